//! The files of the live page. They are part of the program: the page loads nothing from anywhere else.

/// A file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asset {
    /// Its path in a request.
    pub(super) path: &'static str,
    /// Its media type.
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

/// All files.
pub(super) static ASSETS: [Asset; 5] = [
    Asset { path: "/", kind: "text/html; charset=utf-8", text: include_str!("page/index.html") },
    Asset {
        path: "/live.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("page/live.css"),
    },
    Asset {
        path: "/live.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("page/live.js"),
    },
    Asset {
        path: "/plots.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("page/plots.js"),
    },
    Asset { path: "/icon.svg", kind: "image/svg+xml", text: include_str!("page/icon.svg") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_no_file_of_another_host_and_has_no_inline_code() {
        for Asset { path, text, .. } in &ASSETS {
            // The name of a vocabulary, which nothing is loaded from.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{path}");
            for attribute in [" style=", " onclick=", " onload=", "javascript:"] {
                assert!(!text.contains(attribute), "{path}: {attribute}");
            }
        }
        let page = ASSETS[0].text;
        for reference in page.split("src=\"").chain(page.split("href=\"")).skip(1) {
            let target = reference.split('"').next().unwrap();
            let is_known = ASSETS.iter().any(|asset| asset.path == target)
                || ["/metrics", "/config"].contains(&target)
                || target.starts_with('#')
                || reference.starts_with("<!doctype");
            assert!(is_known, "{target}");
        }
    }
}
