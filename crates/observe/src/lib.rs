//! Run summaries and live figures.
