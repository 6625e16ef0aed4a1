//! Classes of requests, with their shares.

use std::str::FromStr;

use thiserror::Error;

/// Classes at most.
pub const CLASSES: usize = 16;

/// A class of requests, as `NAME=SHARE:WHAT`. What it is depends on the protocol: a service time, a path, a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name in reports.
    pub name: String,
    /// Its share of all requests, above 0 and at most 1.
    pub share: f64,
    /// What its requests ask for.
    pub what: String,
}

/// Why classes make no sense.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ClassError {
    /// Not of the form.
    #[error(
        "`{0}` is not NAME=SHARE:WHAT, such as short=0.9:1us, home=50%:/index.html or get=0.9:GET key"
    )]
    Form(String),
    /// A share that is none.
    #[error("`{0}` is no share: write a number above 0 and at most 1, or 50%")]
    Share(String),
    /// Shares that do not add up.
    #[error("the shares of the classes add up to {0}, not to 1")]
    Sum(f64),
    /// Too many.
    #[error("these are {0} classes, and there may be 16")]
    Count(usize),
}

impl FromStr for Class {
    type Err = ClassError;

    fn from_str(text: &str) -> Result<Class, ClassError> {
        let form = || ClassError::Form(text.to_owned());
        let (name, rest) = text.split_once('=').ok_or_else(form)?;
        let (share, what) = rest.split_once(':').ok_or_else(form)?;
        if name.is_empty() || what.is_empty() {
            return Err(form());
        }
        let (number, scale) =
            share.strip_suffix('%').map_or((share, 1.0), |number| (number, 100.0));
        match number.trim().parse::<f64>() {
            Ok(number) if number > 0.0 && number <= scale => {
                Ok(Class { name: name.to_owned(), share: number / scale, what: what.to_owned() })
            }
            _ => Err(ClassError::Share(share.to_owned())),
        }
    }
}

/// Classes whose shares add up to 1; possibly none, which is one class without a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassMix(Vec<Class>);

impl ClassMix {
    /// Of these.
    ///
    /// # Errors
    /// [`ClassError`] when there are too many, or the shares do not add up to 1.
    pub fn new(classes: Vec<Class>) -> Result<ClassMix, ClassError> {
        if classes.len() > CLASSES {
            return Err(ClassError::Count(classes.len()));
        }
        let sum: f64 = classes.iter().map(|class| class.share).sum();
        match classes.is_empty() || (sum - 1.0).abs() < 1e-6 {
            true => Ok(ClassMix(classes)),
            false => Err(ClassError::Sum(sum)),
        }
    }

    /// The classes.
    pub fn classes(&self) -> &[Class] {
        &self.0
    }

    /// The class of a uniform number from 0 to below 1.
    pub fn pick(&self, uniform: f64) -> u8 {
        let mut sum = 0.0;
        let class = self.0.iter().position(|class| {
            sum += class.share;
            uniform < sum
        });
        class.unwrap_or(self.0.len().saturating_sub(1)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_and_picked_by_their_shares() {
        let classes = ["a=25%:/x:y", "b=0.75:GET key"].map(|text| text.parse::<Class>().unwrap());
        assert_eq!(classes[0], Class { name: "a".into(), share: 0.25, what: "/x:y".into() });
        let mix = ClassMix::new(classes.to_vec()).unwrap();
        assert_eq!([0.0, 0.249, 0.25, 0.999].map(|uniform| mix.pick(uniform)), [0, 0, 1, 1]);
        assert_eq!(ClassMix::default().pick(0.7), 0);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for wrong in ["", "a", "a=1", "=1:x", "a=1:", "a:1=x"] {
            assert!(matches!(wrong.parse::<Class>(), Err(ClassError::Form(_))), "{wrong}");
        }
        for wrong in ["a=0:x", "a=-1:x", "a=2:x", "a=101%:x", "a=nan:x"] {
            assert!(matches!(wrong.parse::<Class>(), Err(ClassError::Share(_))), "{wrong}");
        }
        let half: Class = "a=0.5:x".parse().unwrap();
        assert_eq!(ClassMix::new(vec![half.clone()]), Err(ClassError::Sum(0.5)));
        assert_eq!(ClassMix::new(vec![half; 17]), Err(ClassError::Count(17)));
    }
}
