//! The processors of a machine as sysfs shows them: which share a core, a socket, a node of memory, and a cache.

use rheostat_base::CoreId;

/// A processor of the kernel: a hyperthread, or a whole core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Its number.
    pub id: CoreId,
    /// The socket.
    pub package: u32,
    /// The core, whose number is that of its socket. Processors of one core are siblings.
    pub core: u32,
    /// The node of memory that is next to it.
    pub node: u32,
}

/// The processors that are online, and the last-level cache of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    processors: Vec<Processor>,
    last_level_cache: Option<u64>,
}

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";
/// Caches of a processor that are looked at.
const CACHES: u32 = 16;

impl Topology {
    /// This machine's.
    pub fn of_this_machine() -> Topology {
        Topology::read(|path| std::fs::read_to_string(path).ok())
    }

    /// What the files of /sys say, of which `read` returns the text. What they do not say is taken as one socket, one node, and
    /// a core for each processor.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Topology {
        let number = |path: String| read(&path)?.trim().parse::<u32>().ok();
        let list = |path: &str| read(path).map_or_else(Vec::new, |text| parse_list(&text));
        let nodes = list(&format!("{NODE}/online"));
        let members: Vec<_> =
            nodes.iter().map(|node| (*node, list(&format!("{NODE}/node{node}/cpulist")))).collect();
        let processor = |id: u32| {
            let topology = format!("{CPU}/cpu{id}/topology");
            let home = members.iter().find(|(_, processors)| processors.contains(&id));
            Some(Processor {
                id: CoreId(u16::try_from(id).ok()?),
                package: number(format!("{topology}/physical_package_id")).unwrap_or(0),
                core: number(format!("{topology}/core_id")).unwrap_or(id),
                node: home.map_or(0, |(node, _)| *node),
            })
        };
        let processors: Vec<_> =
            list(&format!("{CPU}/online")).into_iter().filter_map(processor).collect();
        let first = processors.first().map_or(0, |first| first.id.0);
        let cache = |index: u32| {
            let folder = format!("{CPU}/cpu{first}/cache/index{index}");
            let kind = read(&format!("{folder}/type"))?;
            let level =
                number(format!("{folder}/level")).filter(|_| kind.trim() != "Instruction")?;
            Some((level, parse_size(&read(&format!("{folder}/size"))?)?))
        };
        let last = (0..CACHES).filter_map(cache).max();
        Topology { processors, last_level_cache: last.map(|(_, bytes)| bytes) }
    }

    /// The processors, ascending.
    pub fn processors(&self) -> &[Processor] {
        &self.processors
    }

    /// Bytes of the last-level cache, where they are known.
    pub fn last_level_cache(&self) -> Option<u64> {
        self.last_level_cache
    }

    /// The nodes of memory that have processors, ascending.
    pub fn nodes(&self) -> Vec<u32> {
        let mut nodes: Vec<_> = self.processors.iter().map(|processor| processor.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The processors of each core, cores in the order of their first.
    pub fn cores(&self) -> Vec<Vec<Processor>> {
        let mut cores: Vec<Vec<Processor>> = Vec::new();
        for processor in &self.processors {
            let is_sibling = |core: &&mut Vec<Processor>| {
                (core[0].package, core[0].core) == (processor.package, processor.core)
            };
            match cores.iter_mut().find(is_sibling) {
                Some(core) => core.push(*processor),
                None => cores.push(vec![*processor]),
            }
        }
        cores
    }
}

/// A list as the kernel writes it: `0-3,8`. Parts that are none count nothing.
fn parse_list(text: &str) -> Vec<u32> {
    let part = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
        Some(first..=last.min(u32::from(u16::MAX)))
    };
    let mut numbers: Vec<u32> = text.trim().split(',').filter_map(part).flatten().collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// A size as the kernel writes it: `307200K`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Two sockets of two cores with two hyperthreads each, as Linux numbers them: the second threads come last.
    fn two_sockets() -> Topology {
        let mut files: HashMap<String, String> = HashMap::new();
        let mut put = |path: String, text: &str| files.insert(path, format!("{text}\n"));
        put(format!("{CPU}/online"), "0-7");
        put(format!("{NODE}/online"), "0-1");
        put(format!("{NODE}/node0/cpulist"), "0,2,4,6");
        put(format!("{NODE}/node1/cpulist"), "1,3,5,7");
        for id in 0..8 {
            let topology = format!("{CPU}/cpu{id}/topology");
            put(format!("{topology}/physical_package_id"), &(id % 2).to_string());
            put(format!("{topology}/core_id"), &(id / 2 % 2).to_string());
        }
        for (index, level, kind, size) in
            [(0, "1", "Data", "48K"), (1, "1", "Instruction", "32K"), (2, "3", "Unified", "14M")]
        {
            let folder = format!("{CPU}/cpu0/cache/index{index}");
            put(format!("{folder}/level"), level);
            put(format!("{folder}/type"), kind);
            put(format!("{folder}/size"), size);
        }
        Topology::read(|path| files.get(path).cloned())
    }

    #[test]
    fn siblings_nodes_and_the_cache_are_found() {
        let topology = two_sockets();
        let cores: Vec<Vec<u16>> =
            topology.cores().iter().map(|core| core.iter().map(|p| p.id.0).collect()).collect();
        assert_eq!(cores, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(topology.nodes(), [0, 1]);
        assert_eq!(topology.processors()[5].node, 1);
        assert_eq!(topology.last_level_cache(), Some(14 << 20));
    }

    #[test]
    fn what_sysfs_does_not_say_is_taken_as_plain() {
        let topology =
            Topology::read(|path| path.ends_with("cpu/online").then(|| "0,2-3".to_owned()));
        let ids: Vec<_> = topology.processors().iter().map(|processor| processor.id.0).collect();
        assert_eq!((ids, topology.cores().len()), (vec![0, 2, 3], 3));
        assert_eq!((topology.nodes(), topology.last_level_cache()), (vec![0], None));
        assert_eq!(Topology::read(|_| None), Topology::default());
        assert_eq!(Topology::read(|_| Some("x-,-,4294967295-".to_owned())), Topology::default());
    }

    #[test]
    fn sizes_and_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_size("307200K\n"), Some(314_572_800));
        assert_eq!([parse_size(""), parse_size("K"), parse_size("0K")], [None; 3]);
        assert_eq!(parse_list("3,0-1,1\n"), [0, 1, 3]);
    }
}
