//! `rheo capture`: copies packets of a running instance into a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_capture::{Expression, Pcapng};
use rheostat_control::FileId;
use rheostat_observe::capture::interface;
use rheostat_observe::control::{CaptureRequest, FileInUse, Reply, Request};
use rheostat_packet::LinkType;
use thiserror::Error;

use crate::control::{ClientError, ControlClient, Target};
use crate::interrupt;
use crate::machine::file_id;

/// Why packets were not copied, or not all.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error(
        "`{}` is {role} of the instance, which would be overwritten: write into a file of its own",
        file.display()
    )]
    InUse { file: PathBuf, role: String },
    #[error("cannot create the capture {}: {source}", file.display())]
    Create { file: PathBuf, source: io::Error },
    #[error(
        "a capture is no text for a terminal: name a file with -o, or pipe it into another command"
    )]
    Terminal,
    #[error("the capture {} is incomplete, it ends after {packets} packets: {source}", file.display())]
    Incomplete { file: PathBuf, packets: u64, source: io::Error },
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo capture -o all.pcapng
  rheo capture --device lan --before \\
    --filter 'tcp and port 443 and host 10.0.0.1' -o in.pcapng
  rheo capture --dropped -o drops.pcapng --count 1000
  rheo capture --dropped tcp_invalid -o - | tshark -r - -Y tcp

Filters: ip, ip6, arp, tcp, udp, sctp, icmp, icmp6, proto N, fragment, vlan [ID], and, with src or dst before
them or without, host ADDRESS, net PREFIX, port N or N-M; joined by and, or, not and parentheses.

The file (pcapng) lists each device once for every point: `lan before` has what was received on lan, `lan
after` what was sent there, `lan dropped` what came in on it, or should have left there, and was dropped.
A packet has its direction, its lane (epb_queue), and, if dropped, the reason as a comment. A segment of a service
over TCP has what was decided about it, or why it is sent, as a comment.
Ctrl-C ends the capture. Packets that come faster than they are fetched are not captured; their number is printed
at the end and is in the file. Drops inside a device, such as those of a full queue, have left no packet to copy.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// Only packets of this device.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Only packets that come in, or that go out.
    #[arg(long, value_name = "WAY")]
    direction: Option<Direction>,
    /// Packets as they are received, before the chain.
    #[arg(long)]
    before: bool,
    /// Packets as they are sent, after the chain. Without --before, --after and --dropped: both.
    #[arg(long)]
    after: bool,
    /// Packets that are dropped, for any reason or for the one given; `rheo status` names them.
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    dropped: Option<String>,
    /// Only packets that this matches.
    #[arg(long, value_name = "EXPR")]
    filter: Option<Expression>,
    /// End after so many packets.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Bytes of each packet at most.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    snaplen: Option<u32>,
    /// The file to write; - is standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    /// Packets that come in.
    In,
    /// Packets that go out.
    Out,
}

impl Args {
    fn request(&self) -> CaptureRequest {
        CaptureRequest {
            device: self.device.clone(),
            inbound: self.direction.map(|direction| matches!(direction, Direction::In)),
            before: self.before,
            after: self.after,
            dropped: self.dropped.is_some(),
            reason: self.dropped.clone().filter(|reason| !reason.is_empty()),
            filter: self.filter.as_ref().map(ToString::to_string),
            count: self.count,
            snaplen: self.snaplen,
        }
    }
}

/// Asks, and writes what comes.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    let mut client = args.target.connect()?;
    let request = args.request();
    client.send(&Request::Capture(request.clone()))?;
    let Some(Reply::Capturing { devices, files }) = client.receive()? else {
        return Err(ClientError::Ended.into());
    };
    check_in_use(&args.output, &files)?;
    let mut written = 0;
    let outcome = copy(args, &request, &devices, &mut client, &mut written);
    match outcome {
        // The packets before are in the file, and are reported.
        Err(Error::Io(source)) => {
            let file = args.output.clone();
            err!("error: {}", Error::Incomplete { file, packets: written, source });
            Ok(ExitCode::FAILURE)
        }
        outcome => outcome,
    }
}

/// Refuses to overwrite a file that the instance reads or writes.
fn check_in_use(output: &Path, files: &[FileInUse]) -> Result<(), Error> {
    let Some(FileId::Inode { device, inode }) = file_id(output) else { return Ok(()) };
    let in_use = files.iter().find(|file| (file.device, file.inode) == (device, inode));
    in_use.map_or(Ok(()), |file| {
        Err(Error::InUse { file: output.to_owned(), role: file.role.clone() })
    })
}

/// Writes a capture of these devices to its end. `written` is how many packets are in the file.
fn copy(
    args: &Args,
    request: &CaptureRequest,
    devices: &[String],
    client: &mut ControlClient,
    written: &mut u64,
) -> Result<ExitCode, Error> {
    // Only now: a request that is refused leaves an older file as it was.
    let mut file = Pcapng::new(open(&args.output)?, args.snaplen.unwrap_or(0))?;
    for device in devices {
        for point in request.points() {
            file.interface(&interface(device, point), LinkType::Ethernet)?;
        }
    }
    file.flush()?;
    interrupt::then(client.enough()?)?;
    let (packets, lost) = write(client, &mut file, written)?;
    file.finish(lost)?;
    match lost {
        0 => err!("{packets} packets captured"),
        _ => err!("{packets} packets captured, {lost} packets not captured: too many at once"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes packets until the instance reports that there are no more. Returns how many came, and how many
/// were lost.
///
/// `written` counts the packets that are in the file for sure.
fn write(
    client: &mut ControlClient,
    file: &mut Pcapng<impl Write>,
    written: &mut u64,
) -> Result<(u64, u64), Error> {
    let mut gathered = 0;
    loop {
        match client.receive()? {
            Some(Reply::Packet(copy)) => {
                file.packet(&copy.taken(&copy.interface()))?;
                gathered += 1;
                if !client.has_more() {
                    // A reader that follows the file sees it at once.
                    file.flush()?;
                    *written += std::mem::take(&mut gathered);
                }
            }
            Some(Reply::End { packets, lost }) => return Ok((packets, lost)),
            Some(_) => {}
            None => return Err(ClientError::Ended.into()),
        }
    }
}

fn open(path: &Path) -> Result<Box<dyn Write>, Error> {
    if path.as_os_str() != "-" {
        let file =
            File::create(path).map_err(|source| Error::Create { file: path.to_owned(), source })?;
        return Ok(Box::new(BufWriter::new(file)));
    }
    let output = io::stdout();
    if output.is_terminal() {
        return Err(Error::Terminal);
    }
    Ok(Box::new(BufWriter::new(output)))
}
