//! Where a test has its interfaces, its configuration and its copy of the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use rheostat_testkit::namespace::shell;
use rheostat_testkit::veth::await_links;
use tempfile::TempDir;

use super::RHEO;

/// Two interfaces, `va` and `vc`, and the far ends `vb` and `vd` of their cables.
const PAIRS: &str = "ip link add va type veth peer name vb; ip link add vc type veth peer name vd
for i in va vb vc vd; do sysctl -qw net.ipv6.conf.$i.disable_ipv6=1; ip link set $i up; done
ip addr add 10.1.1.2/24 dev vb";

/// Makes them.
pub(super) fn pairs() {
    shell(PAIRS);
    await_links(&["va", "vb", "vc", "vd"]);
}

/// A folder that every user can look into, with a copy of the binary and a configuration.
pub(super) struct Place {
    folder: TempDir,
}

impl Place {
    pub(super) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::copy(RHEO, folder.path().join("rheo")).unwrap();
        Place { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a configuration that passes packets between two interfaces.
    pub(super) fn config(&self, kind: &str, interfaces: [&str; 2], more: &str) -> PathBuf {
        let device = |name: &str, side: &str, interface: &str| {
            format!(
                "[[device]]\nname = \"{name}\"\nkind = \"{kind}\"\ninterface = \"{interface}\"\n\
                 side = \"{side}\"\n{more}\n"
            )
        };
        let [lan, wan] = interfaces;
        let text = device("lan", "inside", lan)
            + &device("wan", "outside", wan)
            + "[chain]\nfunctions = []\n[workers]\nlanes = 2\n[polling]\npolicy = \"interrupt\"\n";
        let path = self.path("config.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// A run to its end, with exactly these capabilities, as this user.
    pub(super) fn run_with(&self, user: &str, capabilities: &[&str]) -> Output {
        let given = |lists: &[&str]| {
            let names = lists.iter().map(|name| format!("+{}", name.to_lowercase()));
            std::iter::once("-all".to_owned()).chain(names).collect::<Vec<_>>().join(",")
        };
        let short: Vec<_> =
            capabilities.iter().map(|name| name.strip_prefix("CAP_").unwrap()).collect();
        let set = given(&short);
        Command::new("setpriv")
            .args(["--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"])
            .args(["--bounding-set", &set, "--inh-caps", &set, "--ambient-caps", &set, "--"])
            .arg(self.path("rheo"))
            .arg("run")
            .arg(self.path("config.toml"))
            .args(["--json", "--duration", "200ms"])
            .output()
            .expect("setpriv (util-linux) is installed")
    }
}
