//! Doubly linked lists whose links lie in their members, so that joining, leaving and joining two
//! lists allocate nothing and take constant time.

/// Links at or above this value name the head of a list, not a member.
const HEAD: u32 = 1 << 31;

/// A member's neighbours. In a list of no members, the head is its own neighbour.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ListLink {
    prev: u32,
    next: u32,
}

impl ListLink {
    /// The link of a member that is in no list.
    pub(crate) const NONE: ListLink = ListLink { prev: 0, next: 0 };
}

/// Where the links of members are kept. Members are numbered below 2³¹.
pub(crate) trait Links {
    /// The link of `member`.
    fn link(&mut self, member: u32) -> &mut ListLink;
}

/// The heads of several lists of the same members. A member is in one of them at most; which one
/// leaves no trace in its link.
#[derive(Debug)]
pub(crate) struct Lists {
    heads: Box<[ListLink]>,
}

impl Lists {
    /// `count` empty lists.
    pub(crate) fn new(count: usize) -> Lists {
        let head = |list| ListLink { prev: HEAD | list as u32, next: HEAD | list as u32 };
        Lists { heads: (0..count).map(head).collect() }
    }

    /// The member that joined `list` first.
    #[inline]
    pub(crate) fn front(&self, list: usize) -> Option<u32> {
        Some(self.heads[list].next).filter(|&next| next < HEAD)
    }

    /// The member behind `member`.
    pub(crate) fn behind(&self, links: &mut impl Links, member: u32) -> Option<u32> {
        Some(links.link(member).next).filter(|&next| next < HEAD)
    }

    /// Adds `member`, which is in no list, at the end of `list`.
    pub(crate) fn push_back(&mut self, links: &mut impl Links, list: usize, member: u32) {
        let head = HEAD | list as u32;
        let prev = self.heads[list].prev;
        *links.link(member) = ListLink { prev, next: head };
        self.at(links, prev).next = member;
        self.heads[list].prev = member;
    }

    /// Takes `member` out of the list it is in.
    pub(crate) fn unlink(&mut self, links: &mut impl Links, member: u32) {
        let ListLink { prev, next } = *links.link(member);
        self.at(links, prev).next = next;
        self.at(links, next).prev = prev;
    }

    /// Moves all members of `from` to the end of `to`.
    pub(crate) fn append(&mut self, links: &mut impl Links, from: usize, to: usize) {
        let ListLink { prev: last, next: first } = self.heads[from];
        if first >= HEAD {
            return;
        }
        let end = self.heads[to].prev;
        self.at(links, end).next = first;
        links.link(first).prev = end;
        links.link(last).next = HEAD | to as u32;
        self.heads[to].prev = last;
        let empty = HEAD | from as u32;
        self.heads[from] = ListLink { prev: empty, next: empty };
    }

    /// The link of a member, or of a head.
    #[inline]
    fn at<'a>(&'a mut self, links: &'a mut impl Links, place: u32) -> &'a mut ListLink {
        if place >= HEAD { &mut self.heads[(place & !HEAD) as usize] } else { links.link(place) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    struct Members(Vec<ListLink>);

    impl Links for Members {
        fn link(&mut self, member: u32) -> &mut ListLink {
            &mut self.0[member as usize]
        }
    }

    fn members(lists: &Lists, links: &mut Members, list: usize) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = lists.front(list);
        while let Some(member) = next {
            found.push(member);
            next = lists.behind(links, member);
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

        #[test]
        fn lists_hold_what_queues_hold(steps in prop::collection::vec((0..3_u8, 0..12_u32, 0..4_usize), 1..60)) {
            let mut links = Members(vec![ListLink::default(); 12]);
            let mut lists = Lists::new(4);
            let mut model: [VecDeque<u32>; 4] = Default::default();
            for (step, member, list) in steps {
                let home = model.iter().position(|queue| queue.contains(&member));
                match (step, home) {
                    (0, None) => {
                        lists.push_back(&mut links, list, member);
                        model[list].push_back(member);
                    }
                    (1, Some(home)) => {
                        lists.unlink(&mut links, member);
                        model[home].retain(|&other| other != member);
                    }
                    (2, _) => {
                        let to = member as usize % 4;
                        if to != list {
                            lists.append(&mut links, list, to);
                            let moved = std::mem::take(&mut model[list]);
                            model[to].extend(moved);
                        }
                    }
                    _ => {}
                }
                for (list, queue) in model.iter().enumerate() {
                    prop_assert_eq!(queue, &members(&lists, &mut links, list));
                }
            }
        }
    }
}
