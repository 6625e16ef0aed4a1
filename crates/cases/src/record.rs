//! Records of a monitor in the words of a case.

use rheostat_base::Time;
use rheostat_functions::monitor::{FlowRecord, WayCounts};

/// A record as words: the key, why it was made, and what it counts. Times are those of the case, to the
/// millisecond.
pub(crate) fn tell(record: &FlowRecord) -> String {
    let seconds = |time: Time| time.as_nanos() / 1_000_000;
    let millis = |time| format!("{}.{:03}", seconds(time) / 1_000, seconds(time) % 1_000);
    let [out, back] = &record.ways;
    let mut words = vec![
        format!("record {} {}", record.reason.name(), record.key),
        format!("from {} to {}", millis(record.start), millis(record.end)),
        format!("out {} in {}", way(out), way(back)),
        (if record.initiated_forward { "by inner" } else { "by outer" }).to_owned(),
    ];
    if record.part > 0 {
        words.push(format!("part {}", record.part));
    }
    if record.errors > 0 {
        words.push(format!("errors {}", record.errors));
    }
    words.join(" ")
}

/// `packets/bytes`, then flags and the range of times to live, where there are any.
fn way(way: &WayCounts) -> String {
    let flags: String = (0..8)
        .filter(|bit| way.flags >> bit & 1 == 1)
        .map(|bit| ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'W'][bit])
        .collect();
    let flags = if flags.is_empty() { flags } else { format!("/{flags}") };
    let ttl = way.ttl().filter(|ttl| *ttl != [64, 64]);
    let ttl = ttl.map_or(String::new(), |[least, most]| format!("/ttl {least}-{most}"));
    format!("{}/{}{flags}{ttl}", way.packets, way.bytes)
}

/// Whether a record, as told, says all of an expectation: it begins with it, word by word.
pub(crate) fn says(told: &str, words: &str) -> bool {
    told.strip_prefix("record ")
        .and_then(|told| told.strip_prefix(words))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
