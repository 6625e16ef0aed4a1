//! The routes of a network that follows the kernel: those that are given, and the kernel's to other prefixes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_ip::{Route, RouteError};
use rheostat_steer::Prefix;

/// The routes that are given, and those that the kernel has. Clones share them.
#[derive(Clone, Debug)]
pub struct FollowedRoutes(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    given: Vec<Route>,
    kernel: Vec<Route>,
}

impl FollowedRoutes {
    pub(super) fn new(given: Vec<Route>) -> FollowedRoutes {
        FollowedRoutes(Arc::new(Mutex::new(Known { given, kernel: Vec::new() })))
    }

    /// Puts other routes in the place of those that were given. `apply` puts the whole table in force; the kernel's routes that it
    /// refuses are left out.
    ///
    /// # Errors
    /// [`RouteError`] when one of the given routes is refused; then those before stay.
    pub fn give(
        &self,
        given: Vec<Route>,
        apply: impl FnMut(&[Route]) -> Result<(), RouteError>,
    ) -> Result<(), RouteError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut known.given, given);
        let applied = known.apply(apply, |_| {});
        if applied.is_err() {
            known.given = before;
        }
        applied
    }

    /// The prefixes of the kernel's routes to which no route is given.
    pub fn of_kernel(&self) -> HashSet<Prefix> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut prefixes: HashSet<_> = known.kernel.iter().map(|route| route.prefix).collect();
        known.given.iter().for_each(|route| {
            prefixes.remove(&route.prefix);
        });
        prefixes
    }

    /// Takes over the routes that the kernel has now. Those that `apply` refuses are left out, and reported.
    pub(super) fn follow(
        &self,
        kernel: Vec<Route>,
        apply: impl FnMut(&[Route]) -> Result<(), RouteError>,
        report: impl FnMut(&RouteError),
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.kernel = kernel;
        // A given one that is refused now was taken before: the table before stays, which has it.
        let _ = known.apply(apply, report);
    }
}

impl Known {
    fn apply(
        &self,
        mut apply: impl FnMut(&[Route]) -> Result<(), RouteError>,
        mut report: impl FnMut(&RouteError),
    ) -> Result<(), RouteError> {
        let is_given = |route: &Route| self.given.iter().any(|given| given.prefix == route.prefix);
        let mut routes = self.given.clone();
        routes.extend(self.kernel.iter().filter(|route| !is_given(route)).copied());
        while let Err(error) = apply(&routes) {
            // One that the kernel can use and rheostat cannot is left out; the others count.
            let wrong = prefix_of(&error);
            let kept = routes.len();
            routes.retain(|route| Some(route.prefix) != wrong || self.given.contains(route));
            report(&error);
            if routes.len() == kept {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The prefix of the route that an error is about.
fn prefix_of(error: &RouteError) -> Option<Prefix> {
    match error {
        RouteError::Nowhere(prefix)
        | RouteError::Family { prefix, .. }
        | RouteError::OffLink { prefix, .. }
        | RouteError::Own { prefix, .. }
        | RouteError::Device { prefix, .. }
        | RouteError::Twice(prefix) => Some(*prefix),
        RouteError::TooManyHops => None,
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::DeviceId;

    use super::*;

    fn route(to: &str) -> Route {
        Route { prefix: to.parse().unwrap(), gateway: None, device: Some(DeviceId(0)) }
    }

    #[test]
    fn given_routes_go_before_those_of_the_kernel_and_may_change() {
        let routes = FollowedRoutes::new(vec![route("10.0.0.0/8")]);
        let mut table = Vec::new();
        let mut take = |routes: &[Route]| {
            table = routes.iter().map(|route| route.prefix.to_string()).collect();
            Ok(())
        };
        routes.follow(vec![route("10.0.0.0/8"), route("192.0.2.0/24")], &mut take, |_| panic!());
        assert_eq!(routes.of_kernel(), [route("192.0.2.0/24").prefix].into_iter().collect());
        routes.give(vec![route("192.0.2.0/24"), route("fd00::/8")], take).unwrap();
        assert_eq!(table, ["192.0.2.0/24", "fd00::/8", "10.0.0.0/8"]);
    }

    #[test]
    fn a_given_route_that_is_refused_leaves_those_before() {
        let routes = FollowedRoutes::new(vec![route("10.0.0.0/8")]);
        let refused = |routes: &[Route]| {
            let wrong = routes.iter().find(|route| route.prefix.to_string() == "fd00::/8");
            wrong.map_or(Ok(()), |wrong| Err(RouteError::Twice(wrong.prefix)))
        };
        assert!(routes.give(vec![route("fd00::/8")], refused).is_err());
        let mut table = Vec::new();
        let mut reported = 0;
        let apply = |routes: &[Route]| {
            refused(routes)?;
            table = routes.to_vec();
            Ok(())
        };
        routes.follow(vec![route("fd00::/8"), route("192.0.2.0/24")], apply, |_| reported += 1);
        assert_eq!(table, [route("10.0.0.0/8"), route("192.0.2.0/24")]);
        assert_eq!(reported, 1, "a route of the kernel's that is refused is left out");
    }
}
