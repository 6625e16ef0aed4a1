//! The flows that are with an offloading lane.

use super::FlowNumber;

/// A flow that is here.
#[derive(Debug)]
enum Place<F> {
    /// Its packets are processed.
    Working(F),
    /// Its packets go home.
    Refusing(F),
}

/// The flows of other lanes that are here, by home and number.
#[derive(Debug)]
pub(crate) struct Away<F> {
    flows: Vec<Vec<Option<Place<F>>>>,
    len: usize,
}

impl<F> Default for Away<F> {
    fn default() -> Away<F> {
        Away { flows: Vec::new(), len: 0 }
    }
}

impl<F> Away<F> {
    /// A flow has come.
    pub(crate) fn begin(&mut self, number: FlowNumber, flow: F) {
        let (home, place) = (number.home().index(), number.place());
        if self.flows.len() <= home {
            self.flows.resize_with(home + 1, Vec::new);
        }
        let flows = &mut self.flows[home];
        if flows.len() <= place {
            flows.resize_with(place + 1, || None);
        }
        let before = flows[place].replace(Place::Working(flow));
        assert!(before.is_none(), "{number} comes once before it goes");
        self.len += 1;
    }

    /// The flow, unless its packets go home.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: FlowNumber) -> Option<&mut F> {
        match self.place_mut(number)? {
            Some(Place::Working(flow)) => Some(flow),
            _ => None,
        }
    }

    /// Sends all further packets of the flow home.
    pub(crate) fn refuse(&mut self, number: FlowNumber) {
        if let Some(place) = self.place_mut(number) {
            *place = match place.take() {
                Some(Place::Working(flow)) => Some(Place::Refusing(flow)),
                other => other,
            };
        }
    }

    /// The flow goes home: all its packets were processed or refused.
    pub(crate) fn end(&mut self, number: FlowNumber) -> F {
        let flow = self.place_mut(number).and_then(Option::take);
        self.len -= 1;
        match flow.unwrap_or_else(|| panic!("{number} is recalled from where it is")) {
            Place::Working(flow) | Place::Refusing(flow) => flow,
        }
    }

    /// Flows that are here.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn place_mut(&mut self, number: FlowNumber) -> Option<&mut Option<Place<F>>> {
        self.flows.get_mut(number.home().index())?.get_mut(number.place())
    }
}
