//! What commands print.

/// As `println!`, but without a panic when the reader has closed its end: then nothing is written.
macro_rules! out {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}

/// As `eprintln!`, but a terminal that was closed, or a full disk, ends nothing.
macro_rules! err {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}
