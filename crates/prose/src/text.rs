//! Sentences of Markdown text and their words.

use crate::Bounds;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Words that refer to something else in the text, or compare with it: pronouns, relatives and the like.
pub(crate) const VAGUE: [&str; 23] = [
    "what", "who", "whom", "which", "that", "those", "these", "it", "its", "they", "them", "one", "ones", "others",
    "other", "so", "such", "as", "where", "here", "there", "same", "of",
];
/// Share of vague words above which a sentence is hard to read.
pub(crate) const VAGUE_SENTENCE: f64 = 0.3;
/// Words of clauses whose vague words count: shorter clauses are labels, longer clauses exceed the bound for sentences.
const COUNTED: RangeInclusive<usize> = 6..=40;

/// A word: letters and code spans.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Za-z_`]+").expect("the pattern is valid"));

/// A sentence, or a clause: the part of a sentence up to a colon or semicolon.
pub(crate) struct Sentence {
    /// Line of the block that contains the sentence, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Number of words.
    pub(crate) words: usize,
    /// Number of words in [`VAGUE`].
    vague: usize,
}

impl Sentence {
    fn new(line: usize, text: &str) -> Sentence {
        let words = || WORD.find_iter(text).map(|word| word.as_str().to_lowercase());
        let vague = words().filter(|word| VAGUE.contains(&word.as_str())).count();
        Sentence { line, text: text.to_owned(), words: words().count(), vague }
    }

    fn counts(&self) -> bool {
        COUNTED.contains(&self.words)
    }

    /// True if vague words exceed [`VAGUE_SENTENCE`].
    pub(crate) fn is_vague(&self) -> bool {
        self.counts() && self.vague as f64 / self.words as f64 > VAGUE_SENTENCE
    }
}

/// Sentences of a text and the counts over them.
#[derive(Default)]
pub(crate) struct Tally {
    /// Sentences, whose length is bounded.
    pub(crate) sentences: Vec<Sentence>,
    /// Clauses, whose vague words are counted.
    pub(crate) clauses: Vec<Sentence>,
    /// Words of all text.
    pub(crate) words: usize,
    /// Blocks of doc comments.
    pub(crate) blocks: usize,
}

impl Tally {
    /// Tally of a document: text outside code blocks and HTML comments.
    pub(crate) fn of_document(text: &str) -> Tally {
        let mut tally = Tally::default();
        tally.add_text(1, text);
        tally
    }

    /// Adds a block of doc comments whose first line is `line`.
    pub(crate) fn add_block(&mut self, line: usize, text: &str) {
        self.blocks += 1;
        self.add_text(line, text);
    }

    fn add_text(&mut self, line: usize, text: &str) {
        for (offset, piece) in pieces(text) {
            let line = line + text[..offset].matches('\n').count();
            self.words += piece.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
            self.sentences.extend(split(&piece, &SENTENCE_END).map(|sentence| Sentence::new(line, sentence)));
            self.clauses.extend(split(&piece, &CLAUSE_END).map(|clause| Sentence::new(line, clause)));
        }
    }

    /// Adds the counts of another tally.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.words += other.words;
        self.blocks += other.blocks;
        let counts = |sentence: &Sentence| Sentence { text: String::new(), ..*sentence };
        self.sentences.extend(other.sentences.iter().map(counts));
        self.clauses.extend(other.clauses.iter().map(counts));
    }

    /// Share of vague words among all words of counted clauses.
    pub(crate) fn vague_share(&self) -> f64 {
        let counted = || self.clauses.iter().filter(|clause| clause.counts());
        let words: usize = counted().map(|clause| clause.words).sum();
        counted().map(|clause| clause.vague).sum::<usize>() as f64 / words.max(1) as f64
    }

    /// Share of counted clauses whose vague words exceed [`VAGUE_SENTENCE`].
    pub(crate) fn vague_sentences(&self) -> f64 {
        let counted = self.clauses.iter().filter(|clause| clause.counts()).count();
        self.clauses.iter().filter(|clause| clause.is_vague()).count() as f64 / counted.max(1) as f64
    }

    /// Words of the longest sentence.
    pub(crate) fn longest(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.words).max().unwrap_or(0)
    }

    /// One line per sentence longer than `most` words.
    pub(crate) fn long_sentences(&self, name: &str, most: usize) -> Vec<String> {
        let long = self.sentences.iter().filter(|sentence| sentence.words > most);
        long.map(|Sentence { line, text, words, .. }| format!("{name}:{line}: {words} words, at most {most}: {text}"))
            .collect()
    }

    /// One line per share above its bound.
    pub(crate) fn excess(&self, name: &str, bounds: &Bounds) -> Vec<String> {
        let shares = [
            ("words are pronouns or relatives", self.vague_share(), bounds.vague_share),
            ("sentences have above 30 % such words", self.vague_sentences(), bounds.vague_sentences),
        ];
        let above = shares.into_iter().filter(|(_, share, most)| share > most);
        above
            .map(|(what, share, most)| format!("{name}: {:.1} % of {what}, at most {}", 100.0 * share, 100.0 * most))
            .collect()
    }
}

/// Pieces of Markdown, each with the byte offset of its start: paragraphs, headings, list items and table cells without
/// markup. A code span is one word. Code blocks and HTML have no pieces.
fn pieces(text: &str) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    let mut open = (0, String::new());
    let mut is_code = false;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(words) if !is_code => extend(&mut open, range.start, &words),
            Event::Code(_) => extend(&mut open, range.start, "`code`"),
            Event::SoftBreak | Event::HardBreak => extend(&mut open, range.start, " "),
            Event::Start(tag) if is_inline(&tag.to_end()) => {}
            Event::End(tag) if is_inline(&tag) => {}
            Event::Start(_) | Event::End(_) | Event::Rule => close(&mut open, &mut pieces),
            _ => {}
        }
    }
    close(&mut open, &mut pieces);
    pieces
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

fn extend(open: &mut (usize, String), offset: usize, text: &str) {
    if open.1.is_empty() {
        open.0 = offset;
    }
    open.1.push_str(text);
}

fn close(open: &mut (usize, String), pieces: &mut Vec<(usize, String)>) {
    let (offset, text) = std::mem::take(open);
    if !text.trim().is_empty() {
        pieces.push((offset, text));
    }
}

/// End of a sentence, with the white space that follows.
static SENTENCE_END: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[.!?][)\]\x22'*_]*[ \n\t]+").expect("the pattern is valid"));
/// End of a clause, with the white space that follows.
static CLAUSE_END: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[.:;!?][)\]\x22'*_]*[ \n\t]+").expect("the pattern is valid"));

/// Splits a piece behind each match for `end`.
fn split<'a>(piece: &'a str, end: &Regex) -> impl Iterator<Item = &'a str> {
    let ends: Vec<usize> = end.find_iter(piece).map(|end| end.end()).chain([piece.len()]).collect();
    let starts = [0].into_iter().chain(ends.clone());
    starts.zip(ends).map(|(start, end)| piece[start..end].trim()).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<(usize, usize)> {
        Tally::of_document(text).sentences.iter().map(|sentence| (sentence.line, sentence.words)).collect()
    }

    #[test]
    fn headings_items_and_cells_are_pieces_of_their_own() {
        assert_eq!(sentences("# A heading\n\nText that\nwraps. And goes on"), [(1, 2), (3, 3), (3, 3)]);
        assert_eq!(sentences("- an item\n  of two lines\n- another"), [(1, 5), (3, 1)]);
        assert_eq!(sentences("| a cell | b |\n| --- | --- |\n| two. Sentences | |"), [(1, 2), (1, 1), (3, 1), (3, 1)]);
    }

    #[test]
    fn code_blocks_and_comments_have_no_words_and_a_code_span_has_one() {
        assert_eq!(sentences("```\nno text\n```\n<!-- nor\nthis -->\n\nA `span of code` ends."), [(7, 3)]);
        assert_eq!(sentences("See [two words](docs/a-file.md)."), [(1, 3)]);
    }

    #[test]
    fn vague_words_are_counted_in_sentences_of_six_to_forty_words() {
        let tally = Tally::of_document("Arrival time of the last packet per channel. It is that of those again.");
        assert_eq!(tally.vague_share(), 5.0 / 14.0);
        assert_eq!(tally.vague_sentences(), 0.5);
        assert_eq!(Tally::of_document("Those of it.").vague_share(), 0.0);
    }

    #[test]
    fn every_share_above_its_bound_is_told() {
        let tally = Tally::of_document("It is that of those.\n\nIt is that of those here.");
        let told = tally.excess("x", &crate::BOUNDS);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("x: 83.3 % of words"), "{told:?}");
        let long = Tally::of_document(&"word ".repeat(41));
        assert_eq!(long.long_sentences("x", 40).len(), 1);
        assert!(long.long_sentences("x", 41).is_empty());
        let clauses = Tally::of_document(&format!("{}: {}", "word ".repeat(21).trim(), "word ".repeat(20)));
        assert_eq!((clauses.clauses.len(), clauses.long_sentences("x", 40).len()), (2, 1), "a colon ends no sentence");
    }
}
