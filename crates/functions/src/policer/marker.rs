//! What becomes of packets by their colour, and the colours they come with.

use super::dscp::Dscp;
use super::meter::Colour;

/// What becomes of packets of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They pass as they are.
    Pass,
    /// They are dropped.
    Drop,
    /// They pass with this code point.
    Remark(Dscp),
    /// Those of a class of assured forwarding pass with the drop precedence of their colour (RFC 2697
    /// and 2698, section 4), all others as they are.
    DropPrecedence,
}

/// What becomes of packets, by their colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    /// Of those within the committed rate.
    pub green: Action,
    /// Of those beyond it.
    pub yellow: Action,
    /// Of those beyond all.
    pub red: Action,
}

impl Default for Actions {
    fn default() -> Actions {
        Actions { green: Action::Pass, yellow: Action::Pass, red: Action::Drop }
    }
}

impl Actions {
    /// What becomes of packets of `colour`.
    #[inline]
    pub fn of(&self, colour: Colour) -> Action {
        match colour {
            Colour::Green => self.green,
            Colour::Yellow => self.yellow,
            Colour::Red => self.red,
        }
    }
}

/// The colours that packets come with, by their code points: how a meter that is aware of colours
/// determines them. RFC 2697 and 2698 leave it to the domain (section 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColourMap([Colour; 64]);

impl Default for ColourMap {
    /// Drop precedences of assured forwarding are the colours; everything else is green.
    fn default() -> ColourMap {
        ColourMap(std::array::from_fn(|number| {
            let dscp = Dscp::of_traffic_class((number as u8) << 2);
            dscp.drop_precedence().unwrap_or(Colour::Green)
        }))
    }
}

impl ColourMap {
    /// Sets the colour of a code point.
    pub fn set(&mut self, dscp: Dscp, colour: Colour) {
        self.0[usize::from(dscp.number())] = colour;
    }

    /// The colour of packets with this code point.
    #[inline]
    pub fn colour(&self, dscp: Dscp) -> Colour {
        self.0[usize::from(dscp.number())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_drop_precedences_unless_said_otherwise() {
        let mut map = ColourMap::default();
        let colour = |map: &ColourMap, name: &str| map.colour(name.parse().unwrap());
        assert_eq!(colour(&map, "af21"), Colour::Green);
        assert_eq!(colour(&map, "af22"), Colour::Yellow);
        assert_eq!(colour(&map, "af43"), Colour::Red);
        assert_eq!(colour(&map, "ef"), Colour::Green);
        assert_eq!(colour(&map, "default"), Colour::Green);
        map.set("le".parse().unwrap(), Colour::Red);
        map.set("af43".parse().unwrap(), Colour::Yellow);
        assert_eq!((colour(&map, "le"), colour(&map, "af43")), (Colour::Red, Colour::Yellow));
    }

    #[test]
    fn each_colour_has_its_action() {
        let le = Action::Remark("le".parse().unwrap());
        let actions = Actions { green: Action::DropPrecedence, yellow: le, red: Action::Drop };
        assert_eq!(actions.of(Colour::Green), Action::DropPrecedence);
        assert_eq!(actions.of(Colour::Yellow), le);
        assert_eq!(actions.of(Colour::Red), Action::Drop);
    }
}
