//! Files that a worker keeps for a while, so that a request for one makes no system call.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::mem;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;

use super::conditions::Validators;
use super::date;
use super::mime;
use super::status::is_out_of_files;
use super::tree::{Tree, Version};

/// The longest file whose contents are kept; of longer ones, the open file is.
const SMALL: u64 = 64 << 10;
/// Files kept at most, in both generations.
const FILES: usize = 1_024;
/// Open files among them at most.
const OPEN: usize = 128;
/// What a file takes besides its path and contents, about.
const OVERHEAD: usize = 512;

/// The files that were asked for last. Each is used for `time` after it was looked at in the file system, and then looked at again.
///
/// There are two generations, of half the bounds each. A file that is used moves to the young one. When that is full, or `time` has
/// passed, the old one is dropped and the young one takes its place: constant work for a request, and a file that nobody asks for is
/// closed by the second request that is more than `time` later.
#[derive(Debug)]
pub(super) struct FileCache {
    time: Duration,
    /// Bytes at most.
    memory: usize,
    young: Generation,
    old: Generation,
    /// When the young generation began.
    begun: Time,
}

#[derive(Debug, Default)]
struct Generation {
    files: HashMap<Box<str>, CachedFile>,
    memory: usize,
    open: usize,
}

#[derive(Debug)]
struct CachedFile {
    file: Arc<ServedFile>,
    /// When the file was looked at, and how many uploads had been finished before.
    looked_at: Time,
    uploads: u64,
}

/// A version of a file.
#[derive(Debug)]
pub(super) struct ServedFile {
    pub(super) content: Content,
    pub(super) version: Version,
    pub(super) validators: Validators,
    /// The value of `Last-Modified`.
    pub(super) last_modified: String,
    /// The type of its content.
    pub(super) mime: &'static str,
}

/// Where the bytes of a file are read from.
#[derive(Debug)]
pub(super) enum Content {
    Memory(Box<[u8]>),
    File(File),
}

impl FileCache {
    /// Keeps files for `time`, and `memory` bytes at most; nothing if either is zero.
    pub(super) fn new(time: Duration, memory: usize) -> FileCache {
        let generation = Generation::default;
        FileCache { time, memory, young: generation(), old: generation(), begun: Time::ZERO }
    }

    /// The file of a path, or `None` for a directory, at `now`, since 1970, when so many uploads were finished.
    pub(super) fn find(
        &mut self,
        tree: &Tree,
        path: &str,
        now: Time,
        uploads: u64,
    ) -> io::Result<Option<Arc<ServedFile>>> {
        if self.time.is_zero() || self.memory == 0 {
            let file = tree.find(path)?.map(|(file, version)| {
                Arc::new(ServedFile::new(Content::File(file), version, path, now))
            });
            return Ok(file);
        }
        self.rotate(now);
        let known = match self.young.files.get(path) {
            Some(cached) if self.is_current(cached, now, uploads) => {
                return Ok(Some(cached.file.clone()));
            }
            Some(_) => self.young.remove(path),
            None => self.old.remove(path),
        };
        if let Some(cached) = known {
            if self.is_current(&cached, now, uploads) {
                let file = cached.file.clone();
                self.insert(path, cached);
                return Ok(Some(file));
            }
            return self.look(tree, path, now, uploads, Some(cached.file));
        }
        self.look(tree, path, now, uploads, None)
    }

    /// Looks a file up in the file system. What is `known` of it stays if it is the same version.
    fn look(
        &mut self,
        tree: &Tree,
        path: &str,
        now: Time,
        uploads: u64,
        known: Option<Arc<ServedFile>>,
    ) -> io::Result<Option<Arc<ServedFile>>> {
        let found = match tree.find(path) {
            Err(error) if is_out_of_files(&error) => {
                (self.young, self.old) = (Generation::default(), Generation::default());
                tree.find(path)?
            }
            found => found?,
        };
        let Some((file, version)) = found else { return Ok(None) };
        // Weak validators: there may have been another version since that looks the same.
        let is_same =
            |known: &Arc<ServedFile>| known.version == version && known.validators.is_strong;
        let file = match known.filter(is_same) {
            Some(known) => known,
            None => Arc::new(ServedFile::read(file, version, path, now)),
        };
        self.insert(path, CachedFile { file: file.clone(), looked_at: now, uploads });
        Ok(Some(file))
    }

    /// Whether a file need not be looked at in the file system by its path.
    fn is_current(&self, cached: &CachedFile, now: Time, uploads: u64) -> bool {
        // The clock may have been set back.
        let is_fresh = cached.looked_at <= now && now.since(cached.looked_at) < self.time;
        is_fresh
            && cached.uploads == uploads
            && match &cached.file.content {
                Content::Memory(_) => true,
                // Its bytes are those of now, and so must its version be.
                Content::File(file) => {
                    Version::of(file).is_ok_and(|version| version == cached.file.version)
                }
            }
    }

    fn insert(&mut self, path: &str, cached: CachedFile) {
        let cost = cost(path, &cached.file);
        if cost > self.memory / 2 {
            return;
        }
        let is_open = usize::from(matches!(cached.file.content, Content::File(_)));
        if self.young.files.len() + 1 > FILES / 2
            || self.young.open + is_open > OPEN / 2
            || self.young.memory + cost > self.memory / 2
        {
            self.old = mem::take(&mut self.young);
        }
        self.young.memory += cost;
        self.young.open += is_open;
        self.young.files.insert(path.into(), cached);
    }

    /// Begins a new generation when the young one is old.
    fn rotate(&mut self, now: Time) {
        let age = now.since(self.begun);
        if age < self.time && self.begun <= now {
            return;
        }
        self.old = match age < 2 * self.time {
            true => mem::take(&mut self.young),
            false => Generation::default(),
        };
        self.young = Generation::default();
        self.begun = now;
    }
}

impl Generation {
    fn remove(&mut self, path: &str) -> Option<CachedFile> {
        let cached = self.files.remove(path)?;
        self.memory -= cost(path, &cached.file);
        self.open -= usize::from(matches!(cached.file.content, Content::File(_)));
        Some(cached)
    }
}

impl ServedFile {
    /// Reads the contents of a short file.
    fn read(file: File, version: Version, path: &str, now: Time) -> ServedFile {
        let content = match version.len {
            0..=SMALL => read_whole(&file, &version).map(Content::Memory),
            _ => None,
        };
        ServedFile::new(content.unwrap_or(Content::File(file)), version, path, now)
    }

    fn new(content: Content, version: Version, path: &str, now: Time) -> ServedFile {
        let seconds = (now.as_nanos() / 1_000_000_000) as i64;
        let validators = Validators::of(&version, seconds);
        let last_modified = date::format(validators.modified);
        ServedFile { content, version, validators, last_modified, mime: mime::of(path) }
    }
}

/// The contents of a file, if they are those of this version.
fn read_whole(file: &File, version: &Version) -> Option<Box<[u8]>> {
    let mut bytes = vec![0; version.len as usize];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let is_same = Version::of(file).is_ok_and(|after| after == *version);
    is_same.then(|| bytes.into_boxed_slice())
}

fn cost(path: &str, file: &ServedFile) -> usize {
    let content = match &file.content {
        Content::Memory(bytes) => bytes.len(),
        Content::File(_) => 0,
    };
    path.len() + content + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time long after the test's files are written, so that their validators are strong.
    const NOW: Time = Time::from_secs(10_000_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    struct Tried {
        folder: tempfile::TempDir,
        tree: Tree,
        cache: FileCache,
    }

    fn tried(memory: usize) -> Tried {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::open(folder.path()).unwrap();
        Tried { folder, tree, cache: FileCache::new(SECOND, memory) }
    }

    impl Tried {
        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.folder.path().join(name), text).unwrap();
        }

        fn find(&mut self, path: &str, now: Time, uploads: u64) -> io::Result<Arc<ServedFile>> {
            match self.cache.find(&self.tree, path, now, uploads)? {
                Some(file) => Ok(file),
                None => panic!("{path} is a directory"),
            }
        }

        fn text(&mut self, path: &str, now: Time, uploads: u64) -> String {
            match &self.find(path, now, uploads).unwrap().content {
                Content::Memory(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Content::File(_) => "open".to_owned(),
            }
        }

        fn sizes(&self) -> [usize; 3] {
            let FileCache { young, old, .. } = &self.cache;
            [young.files.len() + old.files.len(), young.open + old.open, young.memory + old.memory]
        }
    }

    #[test]
    fn a_file_is_looked_at_again_after_a_second_and_after_an_upload() {
        let mut tried = tried(1 << 20);
        tried.write("a", "one");
        assert_eq!(tried.text("/a", NOW, 0), "one");
        let first = tried.find("/a", NOW, 0).unwrap();
        tried.write("a", "other");
        assert_eq!(tried.text("/a", NOW + SECOND * 9 / 10, 0), "one");
        assert_eq!(tried.text("/a", NOW + SECOND, 0), "other");
        assert_ne!(tried.find("/a", NOW + SECOND, 0).unwrap().validators, first.validators);
        tried.write("a", "third time");
        assert_eq!(tried.text("/a", NOW + SECOND, 1), "third time");
        std::fs::remove_file(tried.folder.path().join("a")).unwrap();
        assert_eq!(tried.text("/a", NOW + SECOND, 1), "third time");
        let error = tried.find("/a", NOW + 2 * SECOND, 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        tried.write("a", "back");
        assert_eq!(tried.text("/a", NOW + 2 * SECOND, 1), "back");
        // The clock was set back: who knows.
        tried.write("a", "to the past");
        assert_eq!(tried.text("/a", NOW, 1), "to the past");
    }

    #[test]
    fn contents_that_have_not_changed_are_not_read_again() {
        let mut tried = tried(1 << 20);
        tried.write("a", "one");
        let first = tried.find("/a", NOW, 0).unwrap();
        for seconds in 1..9 {
            let again = tried.find("/a", NOW + seconds * SECOND, 0).unwrap();
            assert!(Arc::ptr_eq(&first, &again), "after {seconds} s");
        }
        // Just written: a second write may look the same.
        let (seconds, _) = first.version.modified;
        let now = Time::from_secs(seconds as u64);
        tried.write("b", "one");
        let weak = tried.find("/b", now, 0).unwrap();
        assert!(!weak.validators.is_strong);
        let later = tried.find("/b", now + 50 * SECOND, 0).unwrap();
        assert!(later.validators.is_strong && !Arc::ptr_eq(&weak, &later));
    }

    #[test]
    fn a_long_file_stays_open_and_is_never_one_that_has_changed() {
        let mut tried = tried(1 << 20);
        let long = "x".repeat(SMALL as usize + 1);
        tried.write("a", &long);
        assert_eq!(tried.text("/a", NOW, 0), "open");
        let first = tried.find("/a", NOW, 0).unwrap();
        assert!(Arc::ptr_eq(&first, &tried.find("/a", NOW, 0).unwrap()));
        tried.write("a", "short");
        assert_eq!(tried.text("/a", NOW, 0), "short");
        assert_eq!(tried.sizes()[1], 0);
    }

    #[test]
    fn memory_files_and_time_are_bounded() {
        let mut tried = tried(64 << 10);
        for name in 0..2_000 {
            let (text, open) = ("x".repeat(name), "x".repeat(70_000));
            tried.write("a", if name % 2 == 0 { &text } else { &open });
            std::fs::hard_link(
                tried.folder.path().join("a"),
                tried.folder.path().join(format!("{name}")),
            )
            .unwrap();
            std::fs::remove_file(tried.folder.path().join("a")).unwrap();
            tried.find(&format!("/{name}"), NOW, 0).unwrap();
            let [files, open, memory] = tried.sizes();
            assert!(files <= FILES && open <= OPEN && memory <= 64 << 10, "{name}");
        }
        assert!(tried.sizes()[0] > 10);
        // What is too long for half of the memory is served all the same.
        tried.write("b", &"x".repeat(40_000));
        assert_eq!(tried.text("/b", NOW, 0).len(), 40_000);
        tried.find("/0", NOW + SECOND, 0).unwrap();
        tried.find("/0", NOW + 2 * SECOND, 0).unwrap();
        assert_eq!(tried.sizes()[0], 1, "nobody asked for the others");
    }

    #[test]
    fn nothing_is_kept_for_no_time() {
        let mut tried = tried(1 << 20);
        tried.cache = FileCache::new(Duration::ZERO, 1 << 20);
        tried.write("a", "one");
        assert_eq!(tried.text("/a", NOW, 0), "open");
        assert_eq!(tried.sizes(), [0; 3]);
    }
}
