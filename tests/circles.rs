//! Modules use each other in one direction. A module and those inside it may use each other: a file holds a type, the files of its
//! folder hold the type's parts. Modules of which neither contains the other form a circle if they use each other; no crate gets
//! more of these.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The circles that a crate has, and why they stay. A crate that is missing here has none.
const CIRCLES: [(&str, usize, &str); 17] = [
    ("app", 2, "a run and a service begin alike, and share what ends them"),
    ("control", 1, "flags replace settings before these are checked"),
    ("functions", 4, "a NAT's states know their shard; a backend its health"),
    ("io", 4, "a device, its monitor and its attachment hold each other"),
    ("lab", 8, "a simulator's parts call each other as events come due"),
    ("measure", 1, "a window is measured by requests or by packets"),
    ("nf", 3, "a chain and its parts; a function and what it reads"),
    ("packet", 2, "a buffer knows its pool and a pool its buffers"),
    ("run", 2, "a lane runs a service and hands it packets; a member's channel and its team"),
    ("serve", 4, "two ends of a pipe; a handler and its sockets"),
    ("settings", 1, "a declaration and its kind"),
    ("state", 3, "a flow, its states and its detached form; a transaction and its objects"),
    ("steer", 1, "a problem and its assignment"),
    ("tcp", 1, "a scheduler's name and the error about it"),
    ("traffic", 1, "a population of clients and their sides"),
    ("base", 0, ""),
    ("kernel", 0, ""),
];

/// A module by the names on the way to it from the root of its crate.
type Module = Vec<String>;

/// The source of a crate, without its tests.
#[derive(Default)]
struct Source {
    files: BTreeMap<Module, String>,
    /// What names stand for in a module by its `use` declarations.
    names: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Source {
    fn read(folder: &Path) -> Source {
        let mut source = Source::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(inner) = folders.pop() {
            for entry in fs::read_dir(&inner).expect("a folder of source") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    source.add(folder, &path);
                }
            }
        }
        source
    }

    fn add(&mut self, folder: &Path, path: &Path) {
        let inside = path.strip_prefix(folder).expect("inside the crate").with_extension("");
        let mut module: Module =
            inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        if ["lib", "main"].contains(&module[0].as_str()) {
            module.clear();
        }
        if module.iter().any(|name| ["tests", "models", "fixture"].contains(&name.as_str())) {
            return;
        }
        let text = fs::read_to_string(path).expect("source is text");
        // Tests and models stand at the end of a file.
        let end = ["\n#[cfg(test)]\nmod ", "\n#[cfg(test)]\npub", "\n#[cfg(all("];
        let end = end.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
        let code = text[..end].lines().map(|line| line.split("//").next().unwrap_or(""));
        let code: String = code.collect::<Vec<_>>().join("\n");
        let mut names = BTreeMap::new();
        for declaration in code.split("use ").skip(1) {
            for path in paths(declaration.split(';').next().unwrap_or("")) {
                let (path, alias) = match path.split_once(" as ") {
                    Some((path, alias)) => (path.to_owned(), Some(alias.trim().to_owned())),
                    None => (path, None),
                };
                let path: Vec<String> = path.split("::").map(|s| s.trim().to_owned()).collect();
                let name = alias.unwrap_or_else(|| path.last().cloned().unwrap_or_default());
                names.insert(name, path);
            }
        }
        self.names.insert(module.clone(), names);
        self.files.insert(module, code);
    }

    /// The modules that a module uses, but for those that it is in and those in it.
    fn used(&self, module: &Module) -> BTreeSet<Module> {
        let code = &self.files[module];
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let inline = code.split(|c| !is_name(c)).filter(|word| word.contains("::"));
        let inline = inline.map(|word| word.split("::").map(str::to_owned).collect::<Vec<_>>());
        let all = self.names[module].values().cloned().chain(inline);
        let used = all.filter_map(|path| self.resolve(module, &path, 0));
        used.filter(|used| !used.starts_with(module) && !module.starts_with(used)).collect()
    }

    /// The module in which the thing of this path is defined, through re-exports.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut path: Vec<String> = path.iter().filter(|name| !name.is_empty()).cloned().collect();
        let first = path.first()?.clone();
        let mut at = from.clone();
        if first == "crate" {
            at.clear();
            path.remove(0);
        } else if !["self", "super"].contains(&first.as_str()) {
            at.push(first);
            if !self.files.contains_key(&at) {
                return None;
            }
            at.pop();
        }
        while let Some(name) =
            path.first().filter(|name| ["self", "super"].contains(&name.as_str()))
        {
            if name == "super" {
                at.pop();
            }
            path.remove(0);
        }
        while let Some(name) = path.first() {
            at.push(name.clone());
            if !self.files.contains_key(&at) {
                at.pop();
                break;
            }
            path.remove(0);
        }
        let exported = path.first().and_then(|name| self.names.get(&at)?.get(name));
        if let Some(exported) = exported.filter(|_| depth < 8) {
            let full: Vec<String> = exported.iter().chain(&path[1..]).cloned().collect();
            if let Some(module) = self.resolve(&at, &full, depth + 1) {
                return Some(module);
            }
        }
        self.files.contains_key(&at).then_some(at)
    }

    /// Sets of modules each of which leads to all others.
    fn circles(&self) -> Vec<BTreeSet<&Module>> {
        let known = |module: Module| self.files.get_key_value(&module).map(|(module, _)| module);
        let edges: BTreeMap<&Module, BTreeSet<&Module>> = self
            .files
            .keys()
            .map(|module| (module, self.used(module).into_iter().filter_map(known).collect()))
            .collect();
        let reached = |from: &Module| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<&Module> = edges[from].iter().copied().collect();
            while let Some(module) = next.pop() {
                if seen.insert(module) {
                    next.extend(&edges[module]);
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.files.keys().map(|module| (module, reached(module))).collect();
        let mut circles: BTreeSet<BTreeSet<&Module>> = BTreeSet::new();
        for (module, to) in &reached {
            let circle: BTreeSet<_> =
                to.iter().copied().filter(|other| reached[other].contains(module)).collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}

/// The paths of a `use` tree.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut parts) = (0_i32, vec![String::new()]);
    for c in inner.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().expect("one at least").push(c),
        }
    }
    let whole = parts.iter().flat_map(|part| paths(part)).filter(|part| !part.is_empty());
    whole.map(|part| format!("{prefix}{part}").replace("::self", "")).collect()
}

/// The folders of crates, by name.
fn crates() -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = fs::read_dir(root.join("crates")).expect("crates");
    let folders = folders.map(|entry| entry.expect("an entry").path());
    let all = folders.chain(["lab", "testkit"].map(|name| root.join(name)));
    let named = all.map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, path.join("src"))
    });
    named.filter(|(_, source)| source.is_dir()).collect()
}

#[test]
fn no_crate_gets_more_circles_of_modules() {
    let mut modules = 0;
    let mut faults = Vec::new();
    for (name, folder) in crates() {
        let source = Source::read(&folder);
        modules += source.files.len();
        let circles = source.circles();
        let most =
            CIRCLES.iter().find(|(known, ..)| *known == name).map_or(0, |(_, most, _)| *most);
        if circles.len() > most {
            let named = circles.iter().map(|circle| {
                let modules = circle.iter().map(|module| module.join("::"));
                modules.collect::<Vec<_>>().join(", ")
            });
            let named = named.collect::<Vec<_>>().join("\n  ");
            faults.push(format!("{name}: {} circles, not {most}:\n  {named}", circles.len()));
        }
    }
    assert!(modules > 800, "only {modules} modules were read");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_circle_is_found_through_a_re_export_and_a_parent_is_none() {
    let folder = std::env::temp_dir().join(format!("rheostat-circles-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
        fs::write(path, text).expect("can be written");
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::{inner::Thing, Other as Renamed};\n");
    write("a.rs", "use crate::Thing;\nmod part;\nuse part::Part;\n");
    write("a/part.rs", "use super::A;\n");
    write("b.rs", "mod inner;\n");
    write("b/inner.rs", "fn f() { crate::a::g() }\n");
    write("c.rs", "use crate::Renamed;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n");
    let source = Source::read(&folder);
    let circles = source.circles();
    let names: Vec<Vec<String>> = circles
        .iter()
        .map(|circle| circle.iter().map(|module| module.join("::")).collect())
        .collect();
    fs::remove_dir_all(&folder).expect("can be removed");
    assert_eq!(names, [["a", "b::inner"]]);
}
