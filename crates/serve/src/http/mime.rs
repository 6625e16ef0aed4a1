//! Types of content by the ends of names.

/// The type of a file of this name.
pub(super) fn of(path: &str) -> &'static str {
    let end = path.rsplit_once('.').map_or("", |(_, end)| end);
    match end {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "txt" | "md" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "wasm" => "application/wasm",
        "pdf" => "application/pdf",
        _ if path.ends_with('/') => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    }
}
