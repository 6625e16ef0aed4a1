use super::walk::{Subject, Walk, WalkPlace, WalkRequest};
use super::{EntryRecord, ListedFields, MOST_WAITING, Record};
use rheostat_base::{LaneId, ShardId};

fn walk(request: WalkRequest) -> Walk {
    Walk::new(request, 2, 4)
}

fn flows() -> WalkRequest {
    WalkRequest::of(Subject::Flows)
}

fn record() -> Record {
    Record::Entry(EntryRecord { lane: LaneId(0), shard: None, fields: ListedFields::default() })
}

#[test]
fn a_walk_is_over_when_each_shard_was_looked_at_as_a_whole() {
    let walk = walk(flows());
    for shard in (0..4).map(ShardId) {
        assert!(walk.wants(shard) && !walk.is_over());
        walk.note(shard, 2, Some(7));
        assert_eq!((walk.next(shard), walk.wants(shard)), (7, true));
        walk.note(shard, 1, None);
        assert!(!walk.wants(shard));
    }
    assert!(walk.is_over());
    assert_eq!(walk.progress().0, 12);
    assert!(!walk.wants(ShardId(4)), "there is no such shard");
}

#[test]
fn a_walk_for_a_few_takes_shards_in_turn_and_knows_where_it_stopped() {
    let walk = walk(WalkRequest { most: Some(3), ..flows() });
    assert!(walk.wants(ShardId(0)) && !walk.wants(ShardId(1)));
    walk.note(ShardId(0), 1, None);
    assert!(walk.wants(ShardId(1)));
    assert_eq!(walk.wanted(), 2);
    walk.note(ShardId(1), 2, Some(40));
    assert!(walk.is_over());
    let next = WalkPlace { shard: ShardId(1), entry: 40 };
    assert_eq!(walk.stopped_at(), Some(next));
    let rest = self::walk(WalkRequest { most: Some(3), from: Some(next), ..flows() });
    assert!(rest.wants(ShardId(1)) && !rest.wants(ShardId(0)));
    assert_eq!(rest.next(ShardId(1)), 40);
    rest.note(ShardId(1), 3, None);
    assert_eq!(rest.stopped_at(), Some(WalkPlace { shard: ShardId(2), entry: 0 }));
}

#[test]
fn what_all_shards_share_is_listed_by_one_lane() {
    let walk = walk(WalkRequest::of(Subject::Entries("nat".into())));
    assert!(walk.takes_shared() && !walk.takes_shared());
    walk.give_shared_back();
    assert!(walk.takes_shared());
    (0..4).for_each(|shard| walk.note(ShardId(shard), 0, None));
    assert!(!walk.is_over(), "the shared entries are missing");
    walk.note_shared(5);
    assert!(walk.is_over());
    assert_eq!(walk.progress().0, 5);
    assert!(!self::walk(flows()).takes_shared(), "flows are in shards");
}

#[test]
fn a_lane_has_room_for_its_part_of_the_records_until_they_are_read() {
    let walk = walk(flows());
    let fill = |lane| {
        walk.send(lane, |records, room| {
            records.extend((0..room).map(|_| record()));
            room
        })
    };
    assert_eq!(fill(LaneId(0)), Some(MOST_WAITING / 2));
    assert_eq!(fill(LaneId(0)), None);
    assert_eq!(fill(LaneId(1)), Some(MOST_WAITING / 2));
    assert_eq!(fill(LaneId(2)), None, "there is no such lane");
    assert_eq!(walk.take().len(), MOST_WAITING);
    assert_eq!(fill(LaneId(0)), Some(MOST_WAITING / 2));
}
