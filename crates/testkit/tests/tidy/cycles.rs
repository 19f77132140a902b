//! Modules do not import each other in a circle: each can be read, tested and moved with what is below it.
//!
//! Edges are between siblings, at every level of a crate: what any file below one imports from any file below the other,
//! also by a name that a module above hands on. What a parent and its child use of each other is no edge.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::{paths, uses};
use crate::ratchets::{self, MODULES_IN_CIRCLES};
use crate::sources::{Source, sources};

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    ratchets::hold(
        &circles(sources()),
        MODULES_IN_CIRCLES,
        "MODULES_IN_CIRCLES",
        "Move what both need into a module below both, or hand the value in.",
    );
}

type Module = Vec<String>;

/// The modules of one crate: which there are, and which names each hands on from elsewhere.
struct Crate<'a> {
    files: Vec<(&'a Module, &'a Source)>,
    modules: BTreeSet<Module>,
    imported: BTreeMap<(Module, String), Module>,
}

impl<'a> Crate<'a> {
    fn new(files: Vec<(&'a Module, &'a Source)>) -> Crate<'a> {
        let modules = files.iter().map(|(module, _)| (*module).clone()).collect();
        let mut this = Crate { files, modules, imported: BTreeMap::new() };
        // Twice, so that a name which is handed on twice leads to where it comes from.
        for _ in 0..2 {
            this.imported = this.imports();
        }
        this
    }

    /// For each module and name that it imports: the module that the name comes from.
    fn imports(&self) -> BTreeMap<(Module, String), Module> {
        let mut imports = BTreeMap::new();
        for (module, source) in &self.files {
            for path in uses(&source.code) {
                let Some(name) = path.last().filter(|name| !["self", "super"].contains(name)) else { continue };
                let target = self.target(module, &path);
                if target.as_ref().is_some_and(|target| target != *module) {
                    imports.extend(target.map(|target| (((*module).clone(), (*name).to_owned()), target)));
                }
            }
        }
        imports
    }

    /// The module that a path leads to, seen from a module; nothing for paths of other crates.
    fn target(&self, from: &Module, path: &[&str]) -> Option<Module> {
        let mut rest = path;
        let mut at = match path.first()? {
            &"crate" => Module::new(),
            &"self" | &"super" => from.clone(),
            first if self.is_module(from, first) => from.clone(),
            _ => return None,
        };
        while let Some((first, after)) = rest.split_first() {
            match *first {
                "crate" | "self" => {}
                "super" => drop(at.pop()?),
                name if self.is_module(&at, name) => at.push(name.to_owned()),
                name => return Some(self.imported.get(&(at.clone(), name.to_owned())).cloned().unwrap_or(at)),
            }
            rest = after;
        }
        Some(at)
    }

    fn is_module(&self, above: &Module, name: &str) -> bool {
        let path: Module = above.iter().cloned().chain([name.to_owned()]).collect();
        self.modules.contains(&path)
    }

    /// Edges between siblings, by the module above them, each with a file that makes it.
    fn edges(&self) -> BTreeMap<Module, BTreeMap<(String, String), &'a str>> {
        let mut edges: BTreeMap<Module, BTreeMap<(String, String), &str>> = BTreeMap::new();
        for (module, source) in &self.files {
            for target in paths(&source.code).iter().filter_map(|path| self.target(module, path)) {
                let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                    let siblings = edges.entry(module.iter().take(common).cloned().collect()).or_default();
                    siblings.entry((from.clone(), to.clone())).or_insert(&source.path);
                }
            }
        }
        edges
    }
}

/// Every module that is part of a circle, with the edge that leads on.
fn circles(sources: &[Source]) -> Vec<String> {
    let mut homes: BTreeMap<&str, Vec<(&Module, &Source)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.code.trim().is_empty()) {
        if let Some(module) = &source.module {
            homes.entry(&source.home).or_default().push((module, source));
        }
    }
    let mut found = Vec::new();
    for (home, files) in homes {
        for (above, edges) in Crate::new(files).edges() {
            let place = [&[home.to_owned()], above.as_slice()].concat().join("::");
            let names: BTreeSet<&String> = edges.keys().flat_map(|(from, to)| [from, to]).collect();
            for name in names.into_iter().filter(|name| reaches(name, name, &edges)) {
                let onward = edges.iter().filter(|((from, to), _)| from == name && reaches(to, name, &edges));
                let onward = onward.map(|((_, to), file)| format!("{to} ({file})")).collect::<Vec<_>>();
                found.push(format!("{place}: {name} imports {}", onward.join(", ")));
            }
        }
    }
    found
}

/// Whether one or more edges lead from one name to the other.
fn reaches(from: &str, to: &str, edges: &BTreeMap<(String, String), &str>) -> bool {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(name) = waiting.pop() {
        for ((_, next), _) in edges.iter().filter(|((start, _), _)| start == name) {
            if next == to {
                return true;
            }
            if seen.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        circles(&crate::sources::read(files.iter().copied()))
    }

    #[test]
    fn siblings_that_import_each_other_are_a_circle() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\nmod two;\nmod three;\n"),
            ("crates/a/src/one.rs", "use crate::two::Two;\n"),
            ("crates/a/src/two/mod.rs", "mod deep;\n"),
            ("crates/a/src/two/deep.rs", "fn f() { super::super::three::go() }\n"),
            ("crates/a/src/three.rs", "use crate::one::{One, self};\n"),
            ("crates/a/src/four.rs", "use crate::{one, two};\n#[cfg(test)]\nmod tests {\n    use crate::four;\n}\n"),
        ];
        assert_eq!(
            found(&files),
            [
                "crates/a: one imports two (crates/a/src/one.rs)",
                "crates/a: three imports one (crates/a/src/three.rs)",
                "crates/a: two imports three (crates/a/src/two/deep.rs)",
            ]
        );
    }

    #[test]
    fn a_name_that_is_handed_on_leads_to_its_module() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\nmod two;\npub use one::One;\npub use two::{Two, Other as Alias};\n"),
            ("crates/a/src/one.rs", "use crate::Two;\n"),
            ("crates/a/src/two.rs", "use crate::One;\n"),
        ];
        assert_eq!(found(&files).len(), 2);
        let files = [
            ("crates/a/src/b/mod.rs", "mod one;\nmod two;\nuse one::One;\n"),
            ("crates/a/src/b/one.rs", "pub struct One;\n"),
            ("crates/a/src/b/two.rs", "use super::One;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn parents_children_and_tests_are_no_circle() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\npub struct Root;\nuse one::One;\n"),
            ("crates/a/src/one/mod.rs", "mod part;\nuse part::Part;\nuse crate::Root;\n"),
            ("crates/a/src/one/part.rs", "use super::One;\nuse crate::one::One;\n"),
            ("crates/a/src/one/tests.rs", "use crate::two::Two;\n"),
            ("crates/a/src/two.rs", "use crate::one::One;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
