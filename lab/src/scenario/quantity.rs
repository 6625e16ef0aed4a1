//! Quantities with units, as serde reads them.

/// `"10us"`.
pub(super) mod duration {
    use std::time::Duration;

    use rheostat_base::unit::parse_duration;
    use serde::de::{Deserialize, Deserializer, Error};

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// `"10us"`, or nothing.
pub(super) mod optional_duration {
    use std::time::Duration;

    use serde::de::Deserializer;

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::duration::deserialize(from).map(Some)
    }
}

/// `"1Mpps"`, or nothing.
pub(super) mod optional_packet_rate {
    use rheostat_base::unit::parse_packet_rate;
    use serde::de::{Deserialize, Deserializer, Error};

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<u64>, D::Error> {
        parse_packet_rate(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
    }
}
