//! Cases in Rust tests: packets in and packets expected, as text, against a chain of the test's own. `docs/cases.md` is the
//! reference of the language.

use std::path::Path;

use rheostat_control::Registry;

pub use rheostat_cases::{Case, CaseError, MakeChain, Subject};

/// Runs a case, or all `*.case` of a folder, and panics with file, line, expected and actual outcome unless all pass. The path
/// is relative to the package.
///
/// The second argument makes the chain for a number of lanes; the cases then have no lines about chain, settings and state.
/// Without it each case states its chain, of the functions that come with rheostat.
///
/// ```
/// # use rheostat::{AnyChain, Firewall, FirewallConfig, Stage, StateLayout};
/// rheostat::cases!("tests/nf/default.case");
///
/// fn chain(_lanes: usize) -> Result<AnyChain, Box<dyn std::error::Error>> {
///     let mut layout = StateLayout::new();
///     let firewall = Stage::new(Firewall::new(FirewallConfig::default()), &mut layout)?;
///     Ok(AnyChain::new(firewall, layout))
/// }
/// rheostat::cases!("tests/nf/tcp-handshake.case", chain);
/// ```
#[macro_export]
macro_rules! cases {
    ($path:expr) => {
        $crate::cases::check(env!("CARGO_MANIFEST_DIR"), $path, None)
    };
    ($path:expr, $chain:expr) => {
        $crate::cases::check(
            env!("CARGO_MANIFEST_DIR"),
            $path,
            Some(&|lanes: usize| ($chain)(lanes).map_err(|error| error.to_string())),
        )
    };
}

/// Runs the cases at a path in `folder`: [`cases!`](crate::cases!).
///
/// # Panics
/// Unless all pass, or when there is none.
#[track_caller]
pub fn check(folder: &str, path: &str, chain: Option<&MakeChain>) {
    let registry = Registry::new()
        .with_functions(rheostat_functions::ALL)
        .with_chains(rheostat_functions::shipped::CHAINS);
    let subject = chain.map_or(Subject::Named(&registry), Subject::Own);
    let outcome = rheostat_cases::files(&Path::new(folder).join(path)).map(|files| {
        let outcomes = files.iter().map(|file| Case::load(file)?.run(&subject));
        outcomes.filter_map(Result::err).collect::<Vec<_>>()
    });
    let wrong = outcome.unwrap_or_else(|error| vec![error]);
    let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
