//! An answer in pieces, which faults cut by chunks of text or by bytes.

use super::scenario::At;
use super::wire::Step;
use bytes::Bytes;
use std::collections::VecDeque;

/// An answer that is not streamed is cut into chunks of this size where a rule speaks of chunks.
const BODY_CHUNK_BYTES: usize = 64;

#[derive(Debug)]
pub(super) struct Piece {
    pub bytes: Bytes,
    /// A chunk of text, as rules count chunks.
    pub text: bool,
}

pub(super) enum Pieces {
    Body(String),
    Frames(Vec<Piece>),
}

impl Pieces {
    /// What stands before a place, and what after it.
    pub(super) fn cut(self, at: At) -> (Vec<Piece>, Vec<Piece>) {
        let mut pieces = match self {
            Self::Frames(pieces) => pieces,
            Self::Body(body) => body
                .as_bytes()
                .chunks(BODY_CHUNK_BYTES)
                .map(|chunk| Piece { bytes: Bytes::copy_from_slice(chunk), text: true })
                .collect(),
        };
        match at {
            At::Head => (Vec::new(), pieces),
            At::Chunks(chunks) => {
                let mut left = chunks;
                let place = pieces.iter().position(|piece| {
                    let here = piece.text && left == 0;
                    left = left.saturating_sub(u64::from(piece.text));
                    here
                });
                // Beyond the last chunk of text: before what follows it.
                let last_text = pieces.iter().rposition(|piece| piece.text).map_or(0, |last| last + 1);
                let rest = pieces.split_off(place.unwrap_or(last_text));
                (pieces, rest)
            }
            At::Bytes(bytes) => {
                let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
                let mut kept = Vec::new();
                let mut rest = Vec::new();
                for mut piece in pieces {
                    let head = piece.bytes.split_to(left.min(piece.bytes.len()));
                    left -= head.len();
                    if !head.is_empty() {
                        kept.push(Piece { bytes: head, text: piece.text });
                    }
                    if !piece.bytes.is_empty() {
                        rest.push(piece);
                    }
                }
                (kept, rest)
            }
        }
    }
}

pub(super) fn paced(pieces: Vec<Piece>, chunk_latency_ms: i64) -> VecDeque<Step> {
    let mut steps = VecDeque::with_capacity(pieces.len());
    for piece in pieces {
        if piece.text && chunk_latency_ms > 0 {
            steps.push_back(Step::WaitMs(chunk_latency_ms));
        }
        steps.push_back(Step::Data(piece.bytes));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Pieces {
        let piece = |bytes: &'static str, text| Piece { bytes: Bytes::from_static(bytes.as_bytes()), text };
        Pieces::Frames(vec![piece("HH", false), piece("aa", true), piece("bb", true), piece("TT", false)])
    }

    fn joined(pieces: &[Piece]) -> String {
        pieces.iter().map(|piece| std::str::from_utf8(&piece.bytes).unwrap()).collect()
    }

    #[test]
    fn answers_are_cut_by_chunks_of_text_or_by_bytes() {
        let cut = |at| {
            let (kept, rest) = frames().cut(at);
            (joined(&kept), joined(&rest))
        };
        let parts = |kept: &str, rest: &str| (kept.to_owned(), rest.to_owned());
        assert_eq!(cut(At::Chunks(0)), parts("HH", "aabbTT"));
        assert_eq!(cut(At::Chunks(1)), parts("HHaa", "bbTT"));
        assert_eq!(cut(At::Chunks(2)), parts("HHaabb", "TT"));
        assert_eq!(cut(At::Chunks(9)), parts("HHaabb", "TT"));
        assert_eq!(cut(At::Bytes(3)), parts("HHa", "abbTT"));
        assert_eq!(cut(At::Bytes(0)), parts("", "HHaabbTT"));
        assert_eq!(cut(At::Bytes(99)), parts("HHaabbTT", ""));
    }
}
