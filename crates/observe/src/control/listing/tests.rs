use serde::Deserialize;

use super::*;
use crate::control::{ConnectionsRequest, ListRequest, Listing};

/// A peer with a number of bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Peer {
    name: String,
    bytes: u64,
}

impl ListingRow for Peer {
    const COLUMNS: &'static [Column<Peer>] = &[
        Column::left("name", |peer| peer.name.clone(), |peer| SortKey::text(&peer.name)),
        Column::right("bytes", |peer| peer.bytes.to_string(), |peer| SortKey::number(peer.bytes)),
    ];

    fn id(&self) -> SortKey {
        SortKey::text(&self.name)
    }
}

fn peers() -> Vec<Peer> {
    let peers = [("dora", 7), ("anna", 1_200), ("carl", 7), ("bert", 30)];
    peers.map(|(name, bytes)| Peer { name: name.to_owned(), bytes }).to_vec()
}

fn request() -> ListRequest {
    ListRequest::of(Listing::Connections(ConnectionsRequest::default()))
}

/// All pages of a request.
fn pages(mut request: ListRequest) -> Vec<String> {
    let mut pages = Vec::new();
    loop {
        let mut selection = Selection::new(&request).unwrap();
        selection.extend(peers());
        let page = selection.finish();
        assert_eq!(page.matched, 4);
        let names: Vec<_> = page.rows.iter().map(|peer| peer.name.as_str()).collect();
        pages.push(names.join(" "));
        let Some(next) = page.next else { return pages };
        request.cursor = Some(next);
    }
}

#[test]
fn pages_hold_each_row_once_in_the_requested_order() {
    let sorted = |sort: Option<&str>, limit| {
        pages(ListRequest { sort: sort.map(str::to_owned), limit: Some(limit), ..request() })
    };
    assert_eq!(sorted(None, 3), ["anna bert carl", "dora"]);
    assert_eq!(sorted(None, 4), ["anna bert carl dora"]);
    assert_eq!(sorted(Some("bytes"), 1), ["carl", "dora", "bert", "anna"]);
    assert_eq!(sorted(Some("bytes,desc"), 3), ["anna bert carl", "dora"]);
    assert_eq!(sorted(Some("name,desc"), 2), ["dora carl", "bert anna"]);
}

#[test]
fn a_cursor_needs_no_order_beside_it_and_admits_no_other() {
    let first = ListRequest { sort: Some("bytes,desc".into()), limit: Some(1), ..request() };
    let mut selection = Selection::new(&first).unwrap();
    selection.extend(peers());
    let cursor = selection.finish().next;
    let mut selection =
        Selection::new(&ListRequest { cursor: cursor.clone(), ..request() }).unwrap();
    selection.extend(peers());
    assert_eq!(selection.finish().rows[0].name, "bert");
    let other = ListRequest { sort: Some("name".into()), cursor, ..request() };
    let error = Selection::<Peer>::new(&other).unwrap_err();
    assert_eq!(error, OrderError::OtherOrder("bytes,desc".into()));
}

#[test]
fn words_that_are_no_order_and_no_cursor_are_refused() {
    let error = SortOrder::<Peer>::named(Some("age")).unwrap_err().to_string();
    assert!(error.ends_with("the columns are name, bytes"), "{error}");
    let error = SortOrder::<Peer>::named(Some("bytes,down")).unwrap_err();
    assert_eq!(error, OrderError::Direction("down".into()));
    for text in ["", "x", "::", "bytes:0:00", "bytes:00:zz", "bytes:00:00:00", "bytes:é0:00"] {
        let request = ListRequest { cursor: Some(text.to_owned()), ..request() };
        let refused = Selection::<Peer>::new(&request).is_err();
        assert_eq!(refused, text != "::", "`{text}`");
    }
}

#[test]
fn a_row_that_is_offered_again_counts_once_with_its_newer_values() {
    let request = ListRequest { sort: Some("bytes".into()), limit: Some(4), ..request() };
    let mut selection = Selection::new(&request).unwrap();
    selection.extend(peers());
    selection.add(Peer { name: "carl".into(), bytes: 99_999 });
    let page = selection.finish();
    assert_eq!(page.matched, 4);
    let names: Vec<_> = page.rows.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["dora", "bert", "anna", "carl"]);
}

#[test]
fn a_count_needs_no_rows() {
    let mut selection = Selection::new(&ListRequest { count: true, ..request() }).unwrap();
    selection.extend(peers());
    assert_eq!(selection.finish(), Page { rows: Vec::new(), matched: 4, next: None });
}

#[test]
fn columns_are_aligned_below_their_headings() {
    assert_eq!(TextTable(&peers()[..2]).to_string(), "name  bytes\ndora      7\nanna   1200");
    assert_eq!(TextTable::<Peer>(&[]).to_string(), "no rows");
}
