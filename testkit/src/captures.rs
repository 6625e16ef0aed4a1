//! The captures that whole runs are held against.

use std::fs::File;
use std::path::{Path, PathBuf};

use rheostat_io::CaptureSource;
use rheostat_packet::LinkType;
use rheostat_traffic::Source;

/// A capture with a packet in it.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    /// That of its first packet. A capture may hold several; this one names the flows well enough to compare.
    pub link: LinkType,
}

impl Capture {
    fn find(path: PathBuf) -> Option<Capture> {
        let mut source = CaptureSource::open(&path).ok()?;
        let link = source.next(&mut Vec::new())?.link;
        Some(Capture { path, link })
    }

    /// Its packets from the beginning.
    pub fn open(&self) -> CaptureSource<File> {
        CaptureSource::open(&self.path).expect("opened before")
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Calls `compare` with each capture in the folder that `RHEO_TRACES` names, in order, and prints how many there were;
/// without it, prints that the test was not run and returns `false`.
///
/// # Panics
/// When none can be read.
pub fn for_each(mut compare: impl FnMut(&Capture)) -> bool {
    let Ok(folder) = std::env::var("RHEO_TRACES") else {
        println!("not run: RHEO_TRACES is not set");
        return false;
    };
    let files = std::fs::read_dir(&folder).expect("RHEO_TRACES names a folder");
    let mut files: Vec<_> =
        files.map(|file| file.expect("a folder that can be read").path()).collect();
    files.retain(|path| is_capture(path));
    files.sort();
    let captures: Vec<_> = files.into_iter().filter_map(Capture::find).collect();
    assert!(!captures.is_empty(), "no capture in {folder} can be read");
    captures.iter().for_each(&mut compare);
    println!("{} captures", captures.len());
    true
}

fn is_capture(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "pcap" || end == "pcapng" || end == "cap")
}
