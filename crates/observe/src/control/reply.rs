//! What a running instance answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ConfigState, ConnectionLine, HealthWord, Reloaded, Rows};
use crate::capture::PacketCopy;
use crate::explain::Explanation;
use crate::profile::ScalingProfile;
use crate::summary::Summary;
use crate::trace::PacketPath;

/// A line of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// The run so far.
    Status(Box<Status>),
    /// A device's indirection table as it is now.
    Table {
        /// The device.
        device: String,
        /// For each bucket the number of its lane.
        entries: Vec<u16>,
        /// How many times this request rewrote it.
        rewrites: u32,
    },
    /// A backend has another health.
    Backend {
        /// What was changed.
        #[serde(flatten)]
        state: BackendState,
        /// The share of the service's new flows that go to another backend than before, 0 to 1.
        moved: f64,
    },
    /// Packets are copied from now on; the first line of a capture.
    Capturing {
        /// The devices whose packets may come.
        devices: Vec<String>,
        /// The files that the instance reads or writes, which the capture must not overwrite.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileInUse>,
    },
    /// A copy of a packet.
    Packet(Box<PacketCopy>),
    /// Packets are traced from now on; the first line of a trace.
    Tracing,
    /// A packet's way.
    Path(PacketPath),
    /// The last line of a capture or a trace.
    End {
        /// Packets reported.
        packets: u64,
        /// Packets not copied, or notes not kept, because they were not read in time.
        lost: u64,
    },
    /// What a policy would do.
    Explanation(Box<Explanation>),
    /// What keeps the run from scaling.
    Profile(Box<ScalingProfile>),
    /// Connections, as the request `connections` has them.
    Connections {
        /// In the order of the peers' addresses.
        connections: Vec<ConnectionLine>,
    },
    /// Rows of a listing.
    Rows(Rows),
    /// The last line of a listing.
    Listed {
        /// Rows that match, on all pages.
        matched: u64,
        /// Lanes that have not answered in time.
        silent: u64,
        /// The cursor of the next page; left out at the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
    /// Flows were deleted.
    FlowsDeleted {
        /// How many.
        flows: u64,
        /// Lanes that have not answered in time.
        silent: u64,
    },
    /// The versions of the instance.
    Hello {
        /// The newest version of the control protocol that it speaks.
        protocol: u32,
        /// The oldest one.
        oldest: u32,
        /// The version of rheostat.
        version: String,
    },
    /// Another configuration is in force, or would be.
    Reloaded(Box<Reloaded>),
    /// The run ends.
    Stopping,
    /// The configuration in force.
    Config {
        /// Its text, behind comments with the command line and the keys that it replaces.
        text: String,
    },
    /// The run goes on.
    Kept {
        /// Whether it would have ended without this confirmation.
        was_pending: bool,
    },
    /// The request could not be fulfilled.
    Error {
        /// Why, and what to do about it.
        message: String,
    },
}

/// The run so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// As at the end of a run; what is only known then is left out.
    #[serde(flatten)]
    pub summary: Summary,
    /// The devices, in the order of the configuration.
    pub devices: Vec<DeviceState>,
    /// The counters of a service over TCP by their names in RFC 4022, and `tcpCurrEstab`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tcp: BTreeMap<String, u64>,
    /// The other counters of such a service, by the names that its summary has, and the handshakes that clients have not completed
    /// (`half_open`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service: BTreeMap<String, u64>,
    /// Connections that a service has accepted, by the name that its summary has: `accepted` of `service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// The counters of the service's application, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub application: BTreeMap<String, u64>,
    /// Shards whose part is missing in the counters of functions, because their lane has not answered; left out while none is.
    #[serde(default, skip_serializing_if = "is_none")]
    pub missing_shards: usize,
    /// Whose TCP it is, where it is the kernel's; there are no packets, lanes and shards of rheostat's own then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_by: Option<String>,
    /// The backends of a load balancer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<BackendState>,
    /// The configuration and its reloads, where the instance was started from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigState>,
}

/// A regular file that a running instance reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInUse {
    /// What it is to the instance, such as "the input of device `lan`".
    pub role: String,
    /// The device of its file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// What a device has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// Its name.
    pub device: String,
    /// Packets that arrived, those dropped at once included.
    pub arrived: u64,
    /// Packets it dropped before a lane saw them.
    pub lost: u64,
    /// Packets it sent.
    pub sent: u64,
}

/// Whether a backend takes flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendState {
    /// The service it belongs to.
    pub service: String,
    /// Its address, and its port where it has its own.
    pub backend: String,
    /// Its health.
    pub health: HealthWord,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tcp_by {
            None => write!(f, "{}", self.summary)?,
            Some(whose) => {
                write!(f, "TCP       by the {whose}, for {:.3} s", self.summary.seconds)?;
            }
        }
        for DeviceState { device, arrived, lost, sent } in &self.devices {
            write!(f, "\ndevice    {device}: {arrived} arrived, {lost} lost, {sent} sent")?;
        }
        for (name, count) in self.tcp.iter().filter(|(_, count)| **count > 0) {
            write!(f, "\ntcp       {name} {count}")?;
        }
        for (name, count) in self.service.iter().filter(|(_, count)| **count > 0) {
            write!(f, "\nservice   {name} {count}")?;
        }
        for (name, count) in &self.application {
            write!(f, "\nown       {name} {count}")?;
        }
        if self.missing_shards > 0 {
            let missing = self.missing_shards;
            write!(
                f,
                "\nfunctions without {missing} shards, whose lane has not answered: is a worker stuck?"
            )?;
        }
        for BackendState { service, backend, health } in &self.backends {
            write!(f, "\nbackend   {service} {backend} {health}")?;
        }
        if let Some(config) = self.config.as_ref().filter(|config| config.last.is_some()) {
            write!(f, "\nconfig    {config}")?;
        }
        Ok(())
    }
}
