//! Whatever passes for messages of rtnetlink: reading them ends, and what the tables make of them is a set
//! of routes, of each prefix one.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use rheostat_base::DeviceId;
use rheostat_ip::KernelTables;
use rheostat_kernel::routing::Messages;

/// Bytes of the shortest message, its header.
const HEADER: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    assert!(Messages::new(bytes).count() <= bytes.len() / HEADER);
    let mut tables = KernelTables::new([("lan".to_owned(), DeviceId(0))]);
    tables.restart();
    for event in Messages::new(bytes) {
        tables.take(event);
        let routes = tables.routes();
        let prefixes: HashSet<_> = routes.iter().map(|route| route.prefix).collect();
        assert_eq!(prefixes.len(), routes.len());
        assert!(routes.iter().all(|route| route.device == Some(DeviceId(0))));
    }
});
