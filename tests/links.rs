//! Relative links of the documentation lead to files and headings that exist.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages in the root, the folders below it and what cargo and git keep left out.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && !["target", ".git"].iter().any(|kept| name == *kept) {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of a page without blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchors of a page, as GitHub makes them of its headings.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

/// Why a link of the page at `path` leads nowhere.
fn fault(path: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match file {
        "" => path.to_owned(),
        file => path.parent()?.join(file),
    };
    if !file.exists() {
        return Some(format!("{}: no such file: {target}", path.display()));
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = fs::read_to_string(&file).ok()?;
    let is_there = anchors(&text).contains(anchor);
    (!is_there).then(|| format!("{}: no such heading: {target}", path.display()))
}

#[test]
fn every_relative_link_of_the_documentation_leads_somewhere() {
    let mut found = Vec::new();
    pages(Path::new(env!("CARGO_MANIFEST_DIR")), &mut found);
    let (mut links, mut faults) = (0, Vec::new());
    for page in &found {
        let text = fs::read_to_string(page).expect("a page can be read");
        for target in prose(&text).flat_map(targets) {
            links += 1;
            faults.extend(fault(page, target));
        }
    }
    assert!(found.len() > 50 && links > 500, "{} pages, {links} links", found.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_without_a_target_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("links");
    fs::create_dir_all(&folder).expect("a folder");
    let page = folder.join("page.md");
    let text = "# One `thing` twice\n```\n# no heading\n```\n# One thing twice\n";
    fs::write(&page, text).expect("a page");
    for target in ["page.md", "#one-thing-twice", "#one-thing-twice-1", "https://x.example/y#z"] {
        assert_eq!(fault(&page, target), None);
    }
    for target in ["gone.md", "#no-heading", "page.md#two"] {
        assert!(fault(&page, target).is_some(), "{target}");
    }
    assert_eq!(targets("[a](b.md), [c](d.md#e)").collect::<Vec<_>>(), ["b.md", "d.md#e"]);
}
