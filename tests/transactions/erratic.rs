//! A function that does everything a function can do, each packet something else: what that is depends on the
//! packet, on what its flow has seen, and on nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use rheostat::{
    Abort, Admission, Cx, DropReason, Ending, FlowKey, FunctionSpec, NetworkFunction, Objects,
    Outcome, Packet, Transactional, Vector, Verdict,
};

/// Elements of its object.
const SEEN: u64 = 16;

pub(crate) struct Erratic {
    /// What it has done, by kind.
    pub(crate) seen: Arc<Vector<u64>>,
    seed: u64,
    /// Whether its handlers panic now and then.
    panics: bool,
}

/// What it keeps of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Everything that it has ever decided about the flow's packets.
    decisions: Vec<u64>,
}

impl Erratic {
    pub(crate) fn new(objects: &Objects, name: &str, seed: u64, panics: bool) -> Erratic {
        let seen = Arc::new(Vector::new(objects, name, (0..SEEN).map(|_| 0)));
        Erratic { seen, seed, panics }
    }

    /// A number that the packet alone decides.
    fn luck(&self, cx: &Cx<'_, ()>, packet: &Packet<'_>, state: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, cx.now().as_nanos(), packet.arrival_key(), packet.len(), state)
            .hash(&mut hasher);
        packet.data().hash(&mut hasher);
        hasher.finish()
    }

    /// Leaves traces everywhere.
    fn leave_traces(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>, luck: u64) -> Outcome<()> {
        assert_eq!(cx.txn().now(), cx.now(), "objects go by the time of the packet");
        self.seen.update(cx, (luck % SEEN) as usize, |count| *count += 1)?;
        if luck & 0x100 != 0 {
            let _ = packet.set_traffic_class((luck >> 32) as u8);
        }
        if luck & 0x200 != 0
            && let Ok(mut rewrite) = packet.rewrite()
        {
            // Where there are no ports, there is nothing to rewrite.
            let _ = rewrite.set_source_port((luck >> 16) as u16);
        }
        if luck & 0xc00 == 0
            && let Ok(mut quoted) = packet.quoted()
        {
            let address = std::net::Ipv4Addr::from_bits(luck as u32).into();
            let _ = quoted.set_source(address, luck as u16);
        }
        if luck & 0x7000 == 0 {
            cx.originate_like(packet, 200, |bytes| {
                bytes.fill(luck as u8);
                Some(60 + (luck % 100) as usize)
            })?;
        }
        if luck & 0xf0000 == 0
            && let Some(room) = packet.encapsulate(20)
        {
            room.fill(luck as u8);
        }
        match luck >> 40 & 0x1f {
            0 => cx.expire_in(Duration::from_millis(luck >> 50 & 0x3ff)),
            1 => cx.expire_in(Duration::from_secs(luck >> 50 & 0xff)),
            2..=6 => cx.set_evictable(true),
            7 => cx.set_evictable(false),
            8 => cx.close(),
            9 => return Err(Abort),
            10 if self.panics && luck >> 50 & 1 == 0 => panic!("erratic"),
            _ => {}
        }
        Ok(())
    }
}

fn verdict(luck: u64) -> Verdict {
    match luck >> 20 & 0x1f {
        0 => Verdict::Drop(DropReason::Denied),
        1 => Verdict::Consume,
        _ => Verdict::Forward,
    }
}

impl NetworkFunction for Erratic {
    type Flow = Memory;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        let ends_with_run = self.seed.is_multiple_of(2);
        FunctionSpec { ends_with_run, ..FunctionSpec::five_tuple() }
    }

    fn first(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Admission<Memory>> {
        let luck = self.luck(cx, packet, 0);
        self.leave_traces(cx, packet, luck)?;
        Ok(match luck >> 25 & 0xf {
            0 => Admission::Refuse(DropReason::Policed),
            1 => Admission::Pass(verdict(luck)),
            _ => Admission::Admit(Memory { decisions: vec![luck] }, verdict(luck)),
        })
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        memory: &mut Memory,
    ) -> Outcome<Verdict> {
        let luck = self.luck(cx, packet, memory.decisions.iter().fold(0, |sum, one| sum ^ one));
        memory.decisions.push(luck);
        if memory.decisions.len() > 40 {
            memory.decisions.clear();
        }
        self.leave_traces(cx, packet, luck)?;
        Ok(if luck >> 25 & 0x1f == 0 { Verdict::Restart } else { verdict(luck) })
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, ()>,
        _: &FlowKey,
        memory: &mut Memory,
        _: Ending,
    ) -> Outcome<()> {
        let last = memory.decisions.pop().unwrap_or(0);
        self.seen.update(cx, (last >> 5 & (SEEN - 1)) as usize, |count| {
            *count = count.wrapping_add(1 << 20)
        })?;
        if self.panics && last & 0xf000_0000 == 0 {
            panic!("erratic at the end");
        }
        Ok(())
    }

    fn discarded(&self, cx: &mut Cx<'_, ()>, memory: Memory) {
        let at = (memory.decisions[0] & (SEEN - 1)) as usize;
        let _ = self.seen.update(cx, at, |count| *count = count.wrapping_add(1 << 40));
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let luck = self.luck(cx, packet, 1);
        self.leave_traces(cx, packet, luck)?;
        Ok(verdict(luck))
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.seen.update(cx, 0, |count| *count = count.wrapping_add(1 << 60))
    }
}
