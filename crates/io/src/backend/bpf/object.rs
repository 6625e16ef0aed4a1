//! A compiled object in the kernel, with what all objects have in common.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aya::maps::{Array, LpmTrie, Map};
use aya::programs::{ProgramError, SocketFilter};
use aya::{Ebpf, EbpfLoader};
use rheostat_steer::{Fence, INPUT_BYTES, IndirectionTable};

use super::counters::{Meter, ProgramCounters};
use super::error::BpfError;
use super::fence::FenceMode;
use super::program_config::ProgramConfig;
use super::settings::{Settings, ranked_prefixes};
use super::shared_array::SharedArray;
use super::table::KernelTable;

/// A loaded object.
pub(crate) struct Object {
    pub(super) ebpf: Ebpf,
    pub(super) table: Arc<KernelTable>,
    pub(super) meter: Arc<Meter>,
    control: SharedArray,
}

/// Words of `struct control`.
const STOP: usize = 0;
const WITHOUT_METADATA: usize = 4;

impl Object {
    /// Loads the maps of `bytes`, which is called `what`, and fills them; `programs` loads the programs.
    /// `sizes` names maps of other sizes than the object states.
    pub(super) fn load(
        what: &'static str,
        bytes: &[u8],
        sizes: &[(&'static str, u32)],
        config: &ProgramConfig,
        fence: FenceMode,
        programs: impl FnOnce(&mut Ebpf) -> Result<(), ProgramError>,
    ) -> Result<Object, BpfError> {
        let settings = Settings::new(config)?;
        let buckets = config.steering.buckets();
        let processors = aya::util::nr_cpus().map_err(|(file, source)| BpfError::Load {
            what,
            reason: format!("{file}: {source}"),
            verifier_log: String::new(),
        })?;
        let mut loader = EbpfLoader::new();
        settings.apply(&mut loader);
        loader
            .map_max_entries("indirection", buckets as u32)
            .map_max_entries("bucket_load", (buckets * processors) as u32)
            .map_max_entries("totals", processors as u32);
        for (map, entries) in sizes {
            loader.map_max_entries(map, *entries);
        }
        let mut ebpf = loader.load(bytes).map_err(|error| BpfError::load(what, &error))?;
        // While the object still has all its maps: programs refer to them by their descriptors.
        programs(&mut ebpf).map_err(|error| BpfError::load(what, &error))?;

        let mut tables: Array<_, [[u32; 256]; INPUT_BYTES]> = take(&mut ebpf, what, "toeplitz")?;
        tables
            .set(0, config.steering.toeplitz().tables(), 0)
            .map_err(|error| BpfError::load(what, &error))?;
        let mut prefixes: LpmTrie<_, [u8; 17], u32> = take(&mut ebpf, what, "prefixes")?;
        for (key, rank) in ranked_prefixes(config) {
            prefixes.insert(&key, rank, 0).map_err(|error| BpfError::load(what, &error))?;
        }
        let entries = share(&mut ebpf, what, "indirection", buckets, 4)?;
        let loads = share(&mut ebpf, what, "bucket_load", buckets * processors, 16)?;
        let totals = share(&mut ebpf, what, "totals", processors, 16)?;
        let control = share(&mut ebpf, what, "control", 1, 8)?;
        Ok(Object {
            ebpf,
            table: Arc::new(KernelTable::new(entries, config.queues, fence)),
            meter: Arc::new(Meter::new(loads, totals, buckets)),
            control,
        })
    }

    /// Makes every packet the kernel's until [`Object::open`].
    pub(super) fn close(&self) {
        // Relaxed: the word stands alone.
        self.control.u32(0, STOP).store(1, Ordering::Relaxed);
    }

    /// Lets packets through: undoes [`Object::close`].
    pub(crate) fn open(&self) {
        // Relaxed: as above.
        self.control.u32(0, STOP).store(0, Ordering::Relaxed);
    }

    /// Makes every packet the kernel's from now on. Once the fence has passed, no packet is placed any
    /// more.
    pub(crate) fn stop(&self) -> Fence {
        self.close();
        // States when all processors have seen it.
        self.table.fence()
    }

    pub(crate) fn table(&self) -> Arc<dyn IndirectionTable> {
        self.table.clone()
    }

    pub(crate) fn counters(&self) -> ProgramCounters {
        self.meter.read()
    }

    /// Whether packets come without their hash because the driver has no room for it.
    pub(super) fn is_without_metadata(&self) -> bool {
        // Acquire: a lane that has a packet from a ring, which orders its placing before, sees what the program stored when it
        // placed it.
        self.control.u32(0, WITHOUT_METADATA).load(Ordering::Acquire) != 0
    }
}

/// The socket filter called `name` of an object.
pub(super) fn socket_filter<'a>(ebpf: &'a mut Ebpf, name: &str) -> &'a mut SocketFilter {
    let program = ebpf.program_mut(name).expect("the object has this program");
    program.try_into().expect("it is a socket filter")
}

/// Takes the map called `name` out of an object, as a map of type `M`.
pub(super) fn take<M>(
    ebpf: &mut Ebpf,
    what: &'static str,
    name: &'static str,
) -> Result<M, BpfError>
where
    M: TryFrom<Map, Error = aya::maps::MapError>,
{
    let map = ebpf.take_map(name).expect("the object has this map");
    M::try_from(map).map_err(|error| BpfError::load(what, &error))
}

/// Maps the map called `name` into this process.
fn share(
    ebpf: &mut Ebpf,
    what: &'static str,
    name: &'static str,
    entries: usize,
    value_size: usize,
) -> Result<SharedArray, BpfError> {
    let Some(Map::Array(data)) = ebpf.take_map(name) else {
        unreachable!("the object {what} has an array called {name}")
    };
    SharedArray::map(data.fd().as_fd(), entries, value_size)
        .map_err(|source| BpfError::Map { map: name, source })
}
