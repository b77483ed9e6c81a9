//! Files embedded in pages, and the content security policy that admits only their scripts.

use super::Charts;

/// Style of a page, on screen and on paper.
pub(super) const STYLE: &str = include_str!("../../assets/page.css");

/// Additional style for charts drawn by a script.
pub(super) const LIVE_STYLE: &str = include_str!("../../assets/live.css");

/// Script for drawing a page's charts.
pub(super) const SCRIPT: &str = include_str!("../../assets/page.js");

/// The chart library, unchanged; the adjacent `ORIGIN.md` documents origin and licences.
pub(super) const ECHARTS: &str = include_str!("../../assets/vendor/echarts/echarts.common.min.js");

/// SHA-256 of [`SCRIPT`] in base 64, in the format required by the policy.
const SCRIPT_DIGEST: &str = "jKiGNhiXiWBP3cDOhy65j0y0iyeDodcWwbmkNjT0zgE=";

/// SHA-256 of [`ECHARTS`] in base 64, in the format required by the policy.
const ECHARTS_DIGEST: &str = "YfEygKujFh93/IAb9fnHhvVfEEMhU6BoP8XMBwCwE9U=";

/// Returns the page's content security policy. The page loads nothing and sends nothing. No script runs, except the two
/// embedded scripts on a page with live charts. Even unescaped document contents could not run.
pub(super) fn policy(charts: Charts) -> String {
    let scripts = match charts {
        Charts::Still => "'none'".to_owned(),
        Charts::Live => format!("'sha256-{ECHARTS_DIGEST}' 'sha256-{SCRIPT_DIGEST}'"),
    };
    format!(
        "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::BASE64;
    use sha2::{Digest, Sha256};

    #[test]
    fn digests_are_those_of_the_files() {
        for (name, text, digest) in [("page.js", SCRIPT, SCRIPT_DIGEST), ("echarts", ECHARTS, ECHARTS_DIGEST)] {
            assert_eq!(BASE64.encode(&Sha256::digest(text)), digest, "{name}");
        }
    }

    #[test]
    fn no_file_ends_its_element_early_or_is_changed_by_a_reader() {
        for text in [STYLE, LIVE_STYLE, SCRIPT, ECHARTS] {
            let lower = text.to_ascii_lowercase();
            // An HTML parser turns a carriage return into a line feed, which would change the digest.
            for sequence in ["</script", "</style", "<!--", "\r", "\0"] {
                assert!(!lower.contains(sequence), "{sequence:?} in {:.40}", text);
            }
        }
    }

    #[test]
    fn the_library_stands_with_its_licences() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/vendor/echarts/");
        for (file, words) in [
            ("LICENSE", "Apache License"),
            ("NOTICE", "Apache ECharts"),
            ("LICENSE-zrender", "BSD 3-Clause"),
            ("LICENSE-d3", "Mike Bostock"),
            ("ORIGIN.md", "6.1.0"),
        ] {
            let text = std::fs::read_to_string(format!("{folder}{file}")).expect("a file beside the library");
            assert!(text.contains(words), "{file}");
        }
        assert!(ECHARTS.contains("t.version=\"6.1.0\""));
    }
}
