//! Events that follow from two snapshots of a run.

use std::collections::BTreeMap;

use super::EventKind;
use crate::link_board::{LinkLine, LinkWord};
use crate::openmetrics::Snapshot;

/// Ways of shards that a text lists.
const WAYS: usize = 4;

/// The events between two snapshots of one run.
pub(super) fn between(earlier: &Snapshot, later: &Snapshot) -> Vec<(EventKind, String)> {
    let mut events = Vec::new();
    roles(earlier, later, &mut events);
    moves(earlier, later, &mut events);
    let links = (&earlier.status.summary.links, &later.status.summary.links);
    links.0.iter().zip(links.1).for_each(|(before, now)| link(before, now, &mut events));
    for now in &later.status.backends {
        let is_same = |before: &&crate::control::BackendState| {
            before.service == now.service && before.backend == now.backend
        };
        let before = earlier.status.backends.iter().find(is_same);
        if before.is_some_and(|before| before.health != now.health) {
            let text = format!("backend {} of {} is {}", now.backend, now.service, now.health);
            events.push((EventKind::Backend, text));
        }
    }
    let (before, now) = (&earlier.status.summary.dropped, &later.status.summary.dropped);
    for (reason, count) in now.iter().filter(|(reason, _)| !before.contains_key(*reason)) {
        let packets = if *count == 1 { "packet" } else { "packets" };
        let text = format!("first drops for {reason}: {count} {packets}");
        events.push((EventKind::Drop, text));
    }
    events
}

fn roles(earlier: &Snapshot, later: &Snapshot, events: &mut Vec<(EventKind, String)>) {
    let lanes = earlier.status.summary.lanes.iter().zip(&later.status.summary.lanes);
    for (number, (before, now)) in lanes.enumerate() {
        // Roles are known from the first plan on.
        if let (Some(before), Some(now)) = (&before.role, &now.role)
            && before != now
        {
            events.push((EventKind::Lane, format!("lane {number} is {now}, was {before}")));
        }
    }
}

fn moves(earlier: &Snapshot, later: &Snapshot, events: &mut Vec<(EventKind, String)>) {
    let mut ways: BTreeMap<(u16, u16), usize> = BTreeMap::new();
    for (before, now) in earlier.owners.iter().zip(&later.owners).filter(|(a, b)| a != b) {
        *ways.entry((before.0, now.0)).or_default() += 1;
    }
    let moved: usize = ways.values().sum();
    if moved == 0 {
        return;
    }
    let mut largest: Vec<_> = ways.into_iter().collect();
    largest.sort_by_key(|(_, shards)| std::cmp::Reverse(*shards));
    let listed = largest.iter().take(WAYS);
    let listed = listed.map(|((from, to), shards)| format!("{shards} from lane {from} to {to}"));
    let mut text = listed.collect::<Vec<_>>().join(", ");
    if largest.len() > WAYS {
        text.push_str(", others between other lanes");
    }
    let shards = if moved == 1 { "shard" } else { "shards" };
    let why = match later.plan.why.is_empty() {
        true => String::new(),
        false => format!(". {}", later.plan.why.join("; ")),
    };
    events.push((EventKind::Move, format!("{moved} {shards} moved: {text}{why}")));
}

fn link(before: &LinkLine, now: &LinkLine, events: &mut Vec<(EventKind, String)>) {
    let name = format!("{} ({})", now.device, now.interface);
    let text = match now.state {
        LinkWord::Up => "has its link again",
        LinkWord::Down => "has no link",
        LinkWord::Gone => "is gone",
        LinkWord::Detached => "was detached by another process",
    };
    if before.state != now.state {
        events.push((EventKind::Link, format!("{name} {text}")));
    } else if now.vanished > before.vanished || now.down > before.down {
        events.push((EventKind::Link, format!("{name} was lost and came back")));
    }
}
