//! Packets copied from a run, as they travel over the control socket.

use rheostat_base::{DeviceId, DropReason};
use rheostat_capture::{Copied, Expression, Point, Taken, Wanted};
use rheostat_packet::LinkType;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::control::CaptureRequest;

/// The words for link types.
const LINKS: [(&str, LinkType); 5] = [
    ("ethernet", LinkType::Ethernet),
    ("raw", LinkType::Raw),
    ("null", LinkType::Null),
    ("linux_cooked", LinkType::LinuxCooked),
    ("linux_cooked2", LinkType::LinuxCooked2),
];

/// A copy of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketCopy {
    /// The device that received it, or that sends it.
    pub device: String,
    /// Where on its way it was copied.
    pub point: PointWord,
    /// Whether it was on its way in.
    pub inbound: bool,
    /// The lane that saw it.
    pub lane: u16,
    /// Nanoseconds since 1970.
    pub nanos: u64,
    /// What its first bytes are.
    pub link: String,
    /// Bytes it had.
    pub wire_len: u32,
    /// Why it was dropped, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a service did with it, or sent it for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Its bytes.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    pub bytes: Vec<u8>,
}

/// Where on its way a packet is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointWord {
    /// As a lane received it.
    Before,
    /// As a device took it to be sent.
    After,
    /// As it was when it was dropped.
    Dropped,
}

impl PointWord {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            PointWord::Before => "before",
            PointWord::After => "after",
            PointWord::Dropped => "dropped",
        }
    }
}

impl PacketCopy {
    /// The copy for the socket; `devices` has the devices' names.
    pub fn of(copied: &Copied, devices: &[String]) -> PacketCopy {
        let (point, reason) = match copied.point {
            Point::Before => (PointWord::Before, None),
            Point::After => (PointWord::After, None),
            Point::Dropped(reason) => (PointWord::Dropped, Some(reason.name().to_owned())),
        };
        let link = LINKS.iter().find(|(_, link)| *link == copied.link);
        PacketCopy {
            device: devices.get(copied.device.index()).cloned().unwrap_or_default(),
            point,
            inbound: copied.point.is_inbound(),
            lane: copied.lane.0,
            nanos: copied.nanos,
            link: link.map_or("", |(word, _)| word).to_owned(),
            wire_len: copied.wire_len,
            reason,
            comment: copied.comment.clone(),
            bytes: copied.bytes.to_vec(),
        }
    }

    /// The interface that a file lists the packet under.
    pub fn interface(&self) -> String {
        interface(&self.device, self.point)
    }

    /// The copy for a file, under [`PacketCopy::interface`].
    pub fn taken<'a>(&'a self, interface: &'a str) -> Taken<'a> {
        let link = LINKS.iter().find(|(word, _)| *word == self.link);
        Taken {
            interface,
            link: link.map_or(LinkType::Ethernet, |(_, link)| *link),
            nanos: self.nanos,
            inbound: self.inbound,
            lane: self.lane,
            reason: self.reason.as_deref(),
            comment: self.comment.as_deref(),
            wire_len: self.wire_len,
            bytes: &self.bytes,
        }
    }
}

/// What a file calls the packets of a device at a point of their way.
pub fn interface(device: &str, point: PointWord) -> String {
    format!("{device} {}", point.name())
}

impl CaptureRequest {
    /// The points at which packets are copied: those asked for, or before and after the chain.
    pub fn points(&self) -> Vec<PointWord> {
        let asked = [
            (self.before, PointWord::Before),
            (self.after, PointWord::After),
            (self.dropped, PointWord::Dropped),
        ];
        let asked: Vec<_> = asked.into_iter().filter(|(asked, _)| *asked).collect();
        match asked.is_empty() {
            true => vec![PointWord::Before, PointWord::After],
            false => asked.into_iter().map(|(_, point)| point).collect(),
        }
    }

    /// The packets that are meant, in a run with these devices; otherwise what is wrong.
    pub fn wanted(&self, devices: &[String]) -> Result<Wanted, String> {
        let points = self.points();
        let device = match &self.device {
            None => None,
            Some(name) => {
                let number = devices.iter().position(|device| device == name).ok_or_else(|| {
                    format!("there is no device `{name}`; the devices are {}", devices.join(", "))
                })?;
                Some(DeviceId(number as u8))
            }
        };
        let reason = match &self.reason {
            None => None,
            Some(name) => Some(DropReason::named(name).ok_or_else(|| {
                let names: Vec<_> = DropReason::all().map(DropReason::name).collect();
                format!("`{name}` is no reason to drop; the reasons are {}", names.join(", "))
            })?),
        };
        Ok(Wanted {
            device,
            inbound: self.inbound,
            before: points.contains(&PointWord::Before),
            after: points.contains(&PointWord::After),
            dropped: points.contains(&PointWord::Dropped),
            reason,
            filter: expression(self.filter.as_deref())?,
            snaplen: self.snaplen.map_or(usize::MAX, |bytes| bytes as usize),
        })
    }
}

/// The expression in a request, or what is wrong with it.
pub(crate) fn expression(text: Option<&str>) -> Result<Option<Expression>, String> {
    text.map(|text| text.parse().map_err(|error| format!("in the filter, {error}"))).transpose()
}

fn to_hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    serializer.serialize_str(&text)
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || serde::de::Error::custom("bytes are pairs of hexadecimal digits");
    if text.len() % 2 != 0 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16));
    pairs.collect::<Result<_, _>>().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::{LaneId, OwnDropReason};

    fn copied() -> Copied {
        Copied {
            point: Point::Dropped(DropReason::Denied),
            device: DeviceId(1),
            lane: LaneId(3),
            nanos: 1_700_000_000_000_000_001,
            link: LinkType::Raw,
            comment: Some("accepts 5 in order; established".into()),
            wire_len: 90,
            bytes: vec![0x00, 0x7f, 0xff].into(),
        }
    }

    #[test]
    fn a_copy_comes_out_of_the_socket_as_it_went_in() {
        let devices = ["lan".to_owned(), "wan".to_owned()];
        let copy = PacketCopy::of(&copied(), &devices);
        let text = serde_json::to_string(&copy).unwrap();
        assert!(text.contains(r#""bytes":"007fff""#) && text.contains(r#""reason":"denied""#));
        let back: PacketCopy = serde_json::from_str(&text).unwrap();
        assert_eq!(back, copy);
        let name = back.interface();
        assert_eq!(name, "wan dropped");
        let taken = back.taken(&name);
        assert_eq!((taken.link, taken.lane, taken.inbound), (LinkType::Raw, 3, true));
        for wrong in ["0", "0g", "é0"] {
            assert!(serde_json::from_str::<PacketCopy>(&text.replace("007fff", wrong)).is_err());
        }
    }

    #[test]
    fn without_points_it_is_before_and_after() {
        let devices = ["lan".to_owned()];
        let wanted = CaptureRequest::default().wanted(&devices).unwrap();
        assert_eq!(wanted, Wanted::default());
        let dropped = CaptureRequest { dropped: true, ..CaptureRequest::default() };
        let wanted = dropped.wanted(&devices).unwrap();
        assert!(wanted.dropped && !wanted.before && !wanted.after);
    }

    #[test]
    fn packets_can_be_chosen_by_the_reason_of_a_function() {
        static TOO_MANY: OwnDropReason =
            OwnDropReason::new("observe_capture.too_many", "The source sends too much.");
        let reason = TOO_MANY.register().unwrap();
        let named = || Some("observe_capture.too_many".to_owned());
        let request = CaptureRequest { reason: named(), ..CaptureRequest::default() };
        assert_eq!(request.wanted(&[]).unwrap().reason, Some(reason));
        let copy = Copied { point: Point::Dropped(reason), ..copied() };
        assert_eq!(PacketCopy::of(&copy, &["lan".to_owned(), "wan".to_owned()]).reason, named());
        let unknown = CaptureRequest { reason: Some("too_many".into()), ..request };
        let error = unknown.wanted(&[]).unwrap_err();
        assert!(error.contains("observe_capture.too_many"), "{error}");
    }

    #[test]
    fn what_does_not_exist_is_answered_with_what_does() {
        let wrong = |request: CaptureRequest| request.wanted(&["lan".to_owned()]).unwrap_err();
        let none = CaptureRequest::default;
        let error = wrong(CaptureRequest { device: Some("wan".into()), ..none() });
        assert_eq!(error, "there is no device `wan`; the devices are lan");
        let error = wrong(CaptureRequest { reason: Some("bored".into()), ..none() });
        assert!(error.starts_with("`bored` is no reason to drop; the reasons are queue_full, "));
        let error = wrong(CaptureRequest { filter: Some("tpc".into()), ..none() });
        assert!(error.contains("did you mean `tcp`?"), "{error}");
    }
}
