//! The lists that resources are in: each is in one, a lane's pool or those that it lent for one lifetime.

use std::sync::Arc;

use crate::txn::{Objects, Outcome, Part, Slab, Touch, Txn, Words, WordsMut};

/// No resource.
const NONE: u32 = u32::MAX;

/// All lists. The links lie in cells of their own, apart from the leases, so that to look at a lease does not conflict
/// with its neighbours' moving.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    ends: Arc<Slab>,
    links: Arc<Slab>,
    lanes: usize,
    /// Lists of each lane: its pool, and one per lifetime.
    kinds: usize,
}

/// A list, by the number of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListId(u32);

/// The ends of a list and its length, in two words.
#[derive(Clone, Copy)]
struct ListEnds {
    first: u32,
    last: u32,
    len: u32,
}

impl ListEnds {
    fn load(words: &Words<'_>) -> ListEnds {
        let ends = words.get(0);
        ListEnds { first: ends as u32, last: (ends >> 32) as u32, len: words.get(1) as u32 }
    }

    fn words(self) -> [u64; 2] {
        [u64::from(self.last) << 32 | u64::from(self.first), self.len.into()]
    }

    fn store(self, words: &mut WordsMut<'_>) {
        let [ends, len] = self.words();
        words.set(0, ends);
        words.set(1, len);
    }
}

/// The neighbours of a resource and the list it is in, in two words.
#[derive(Clone, Copy)]
struct Links {
    before: u32,
    after: u32,
    list: ListId,
}

impl Links {
    fn load(words: &Words<'_>) -> Links {
        let links = words.get(0);
        let list = ListId(words.get(1) as u32);
        Links { before: links as u32, after: (links >> 32) as u32, list }
    }

    fn words(self) -> [u64; 2] {
        [u64::from(self.after) << 32 | u64::from(self.before), self.list.0.into()]
    }

    fn store(self, words: &mut WordsMut<'_>) {
        let [links, list] = self.words();
        words.set(0, links);
        words.set(1, list);
    }
}

impl Lists {
    /// All of `resources` are in pools: number r in that of lane r mod lanes.
    pub(super) fn new(objects: &Objects, resources: usize, lifetimes: usize) -> Lists {
        let resources = u32::try_from(resources).expect("fewer than 2³² resources");
        assert!(resources < NONE, "fewer than 2³² resources");
        let (lanes, kinds) = (objects.lanes(), lifetimes + 1);
        let step = lanes as u32;
        let ends = Slab::new(objects, lanes * kinds, 2, None, |list, words| {
            let lane = (list / kinds) as u32;
            let empty = !list.is_multiple_of(kinds) || lane >= resources;
            let ends = match empty {
                true => ListEnds { first: NONE, last: NONE, len: 0 },
                false => {
                    let rest = (resources - 1 - lane) / step;
                    ListEnds { first: lane, last: lane + rest * step, len: rest + 1 }
                }
            };
            words.copy_from_slice(&ends.words());
        });
        let links = Slab::new(objects, resources as usize, 2, None, |resource, words| {
            let resource = resource as u32;
            let list = ListId(resource % step * kinds as u32);
            let after = resource.checked_add(step).filter(|after| *after < resources);
            let links = Links {
                before: resource.checked_sub(step).unwrap_or(NONE),
                after: after.unwrap_or(NONE),
                list,
            };
            words.copy_from_slice(&links.words());
        });
        Lists { ends, links, lanes, kinds }
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    /// The free resources of a lane.
    pub(super) fn pool(&self, lane: usize) -> ListId {
        ListId((lane * self.kinds) as u32)
    }

    /// What a lane has lent for a lifetime.
    pub(super) fn lent(&self, lane: usize, lifetime: usize) -> ListId {
        ListId((lane * self.kinds + 1 + lifetime) as u32)
    }

    /// Free resources of all lanes, outside transactions.
    pub(super) fn free(&self) -> usize {
        let len = |lane| ListEnds::load(&self.ends.peek(self.pool(lane).0 as usize)).len as usize;
        (0..self.lanes).map(len).sum()
    }

    /// The first of a list: of a pool the one that has been free for longest, else the one that ends first.
    pub(super) fn first(&self, txn: &mut Txn, list: ListId, touch: Touch) -> Outcome<Option<u32>> {
        let first = self.ends(txn, list, touch)?.first;
        Ok((first != NONE).then_some(first))
    }

    /// The next in the same list.
    pub(super) fn after(&self, txn: &mut Txn, resource: u32, touch: Touch) -> Outcome<Option<u32>> {
        let after = self.links(txn, resource, touch)?.after;
        Ok((after != NONE).then_some(after))
    }

    /// A free resource becomes the last that the lane of the transaction has leased for a lifetime.
    pub(super) fn lease(
        &self,
        txn: &mut Txn,
        resource: u32,
        lifetime: usize,
        touch: Touch,
    ) -> Outcome<()> {
        let lane = txn.lane().index();
        self.change_list(txn, resource, self.lent(lane, lifetime), touch)
    }

    /// A resource becomes the last of a lane's pool.
    pub(super) fn give_back(
        &self,
        txn: &mut Txn,
        resource: u32,
        lane: usize,
        touch: Touch,
    ) -> Outcome<()> {
        self.change_list(txn, resource, self.pool(lane), touch)
    }

    /// A lent resource becomes the last that the same lane has lent for a lifetime.
    pub(super) fn move_to_end(
        &self,
        txn: &mut Txn,
        resource: u32,
        lifetime: usize,
        touch: Touch,
    ) -> Outcome<()> {
        let links = self.links(txn, resource, touch)?;
        let list = self.lent(links.list.0 as usize / self.kinds, lifetime);
        if links.list == list && links.after == NONE {
            return Ok(());
        }
        self.change_list(txn, resource, list, touch)
    }

    /// Moves up to `count` free resources to a lane from the lane that has most. Returns whether there was one.
    #[cold]
    pub(super) fn refill(
        &self,
        txn: &mut Txn,
        lane: usize,
        count: u32,
        touch: Touch,
    ) -> Outcome<bool> {
        let mut fullest = (0, self.pool(lane));
        for other in (0..self.lanes).map(|other| self.pool(other)) {
            let len = self.ends(txn, other, touch)?.len;
            if len > fullest.0 {
                fullest = (len, other);
            }
        }
        let (len, from) = fullest;
        for _ in 0..len.div_ceil(2).min(count) {
            let first = self.first(txn, from, touch)?.expect("half of them are there");
            self.change_list(txn, first, self.pool(lane), touch)?;
        }
        Ok(len > 0)
    }

    /// Takes a resource out of its list and puts it at the end of another, or of the same.
    fn change_list(&self, txn: &mut Txn, resource: u32, to: ListId, touch: Touch) -> Outcome<()> {
        let Links { before, after, list } = self.links(txn, resource, touch)?;
        if before != NONE {
            self.change_links(txn, before, touch, |links| links.after = after)?;
        }
        if after != NONE {
            self.change_links(txn, after, touch, |links| links.before = before)?;
        }
        self.change_ends(txn, list, touch, |ends| {
            ends.first = if before == NONE { after } else { ends.first };
            ends.last = if after == NONE { before } else { ends.last };
            ends.len -= 1;
        })?;
        let last = self.ends(txn, to, touch)?.last;
        if last != NONE {
            self.change_links(txn, last, touch, |links| links.after = resource)?;
        }
        self.change_ends(txn, to, touch, |ends| {
            ends.first = if last == NONE { resource } else { ends.first };
            ends.last = resource;
            ends.len += 1;
        })?;
        self.change_links(txn, resource, touch, |links| {
            *links = Links { before: last, after: NONE, list: to };
        })
    }

    fn part(&self, list: ListId) -> Part {
        if (list.0 as usize).is_multiple_of(self.kinds) { Part::Pool } else { Part::List }
    }

    fn ends(&self, txn: &mut Txn, list: ListId, touch: Touch) -> Outcome<ListEnds> {
        let touch = touch.of_part(self.part(list));
        txn.read(&self.ends, list.0 as usize, touch, ListEnds::load)
    }

    fn links(&self, txn: &mut Txn, resource: u32, touch: Touch) -> Outcome<Links> {
        txn.read(&self.links, resource as usize, touch.of_part(Part::List), Links::load)
    }

    fn change_ends(
        &self,
        txn: &mut Txn,
        list: ListId,
        touch: Touch,
        change: impl FnOnce(&mut ListEnds),
    ) -> Outcome<()> {
        let touch = touch.of_part(self.part(list));
        txn.update(&self.ends, list.0 as usize, touch, |words| {
            let mut ends = ListEnds::load(&words.as_words());
            change(&mut ends);
            ends.store(words);
        })
    }

    fn change_links(
        &self,
        txn: &mut Txn,
        resource: u32,
        touch: Touch,
        change: impl FnOnce(&mut Links),
    ) -> Outcome<()> {
        let touch = touch.of_part(Part::List);
        txn.update(&self.links, resource as usize, touch, |words| {
            let mut links = Links::load(&words.as_words());
            change(&mut links);
            links.store(words);
        })
    }
}
