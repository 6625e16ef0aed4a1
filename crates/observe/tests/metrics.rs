//! The page of the documentation about metrics.

use std::path::Path;

use rheostat_observe::openmetrics;

#[test]
fn the_page_has_every_family() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = openmetrics::to_markdown();
    if std::env::var_os("RHEO_BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "docs/metrics.md is old: write it with RHEO_BLESS=1");
}
