//! Standard output, whose reader may have gone (`rheo check … | head`): that is no reason to fail.

/// As `println!`, but when nobody reads any more, nothing is written.
macro_rules! out {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}
