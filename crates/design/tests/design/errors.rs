//! Error messages that a user sees for an unusable design, and the spellings that are accepted.

use std::fs;
use tombolo_design::{AXES, DesignAxis as _, DesignConfig, Links, apply, design};
use tombolo_machine::{Description, DescriptionKind, machine};
use tombolo_protocol::catalogue::expected;

/// The error from checking design `name` with one setting applied.
fn refused_design(name: &str, path: &str, value: &str) -> String {
    let mut description = design(name).unwrap();
    description.set(path, value).unwrap();
    description.check().unwrap_err().to_string()
}

#[test]
fn settings_find_the_machine_or_the_designs() {
    let mut hmg = machine("hmg-4x4").unwrap();
    let mut designs = [design("nhcc").unwrap(), design("hmg").unwrap()];
    let settings = ["l2.ways=8", "machine.page_bytes = 64KB", "downgrade=true", "design.placement=interleaved-page"];
    apply(&settings, &mut hmg, &mut designs).unwrap();
    let config = hmg.check().unwrap();
    assert_eq!((config.l2.ways, config.page_bytes), (8, 64 << 10));
    for description in designs {
        let config = description.check().unwrap();
        assert!(config.options().downgrade);
        assert_eq!(config.placement.word(), "interleaved-page");
    }
}

#[test]
fn a_setting_that_fits_neither_is_refused() {
    let error = |setting: &str| apply(&[setting], &mut machine("v100").unwrap(), &mut []).unwrap_err().to_string();
    assert!(error("l2.ways").contains("expected path=value"));
    assert!(error("coherense=hmg").contains("did you mean coherence?"), "{}", error("coherense=hmg"));
    assert!(error("bytes=3").contains("a machine or a design has line, page_bytes"), "{}", error("bytes=3"));
    assert!(error("design.l2=3").contains("no key l2"), "checked although there is no design");
    assert!(error("=3").contains("no key"));
}

#[test]
fn designs_that_make_no_sense_are_refused_with_the_reason() {
    for (name, path, value, reason) in [
        ("hmg", "placement", "copied-from-host", "L2s keep lines of other GPUs' memory through a kernel's start"),
        ("ideal", "placement", "unified-memory-cuda6", "L2s keep lines of other GPUs' memory through a kernel's start"),
        ("cpelide", "placement", "copied-from-host", "a table of elision would not know"),
        ("umh", "placement", "copied-from-host", "needs placement = \"cached-in-gpus\""),
        ("hmg", "l1_write", "back", "only \"through\" is allowed"),
        ("ideal", "l2_write", "back", "other protocols may write"),
        ("software-hierarchical", "coherence.downgrade", "true", "only nhcc, hmg does"),
        ("nhcc", "coherence.invalidate", "remote", "only no-remote-caching, software-flat, software-hierarchical does"),
        ("hmg", "coherence.l1_coherent", "false", "only ideal does"),
        ("ideal", "promises", "ptx", "it can promise \"nothing\""),
        ("software-flat", "coherence.invalidate", "none", "keep stale lines; it can promise \"nothing\""),
        (
            "numa-memory-side",
            "coherence.invalidate",
            "remote",
            "only no-remote-caching, software-flat, software-hierarchical does",
        ),
        ("numa-memory-side", "capacity", "static-halves", "keeps no remote data in L2 caches"),
        ("no-remote-caching", "capacity", "numa-aware", "keeps no remote data in L2 caches"),
        ("numa-static-halves", "capacity.sample_time", "1000", "only numa-aware does"),
        ("hmg", "capacity.reset", "false", "only numa-aware does"),
        ("viper", "elision.labels", "exact", "only cpelide does"),
        ("cpelide", "elision.entries", "0", "a whole number from 1 to 65535"),
        ("cpelide", "elision.labels", "hull", "\"ranges\", \"exact\", \"split\""),
        (
            "cpelide-home-aware",
            "coherence.remote",
            "cached",
            "lines of their own module only; here they hold others, too",
        ),
        ("hmg", "boundary", "never", "\"end-then-launch\", \"launch\""),
    ] {
        let error = refused_design(name, path, value);
        assert!(error.contains(reason), "{name} {path}={value}: {error}");
    }
}

#[test]
fn designs_take_only_the_options_that_exist() {
    let error = refused_design("hmg", "coherence", "mesi");
    assert!(error.ends_with(expected()), "{error}");
    for promises in ["", "ptx,ptx", "ptx,nothing", "strong"] {
        assert!(refused_design("hmg", "promises", promises).contains("of \"nothing\" alone"));
    }
    let mut both = design("hmg").unwrap();
    both.set("promises", "ptx, kernel-boundary").unwrap();
    assert_eq!(both.check().unwrap().promises.iter().count(), 2);
}

#[test]
fn a_home_aware_table_is_refused_where_an_l2_holds_lines_of_others_or_nothing() {
    for (name, reason) in
        [("nhcc", "here they have none"), ("software-flat", "here they hold others"), ("ideal", "others")]
    {
        let mut description = design(name).unwrap();
        description.set("elision", "cpelide").unwrap();
        assert!(description.check().is_ok(), "{name}: CPElide's own table is sound everywhere");
        description.set("elision.table", "home-aware").unwrap();
        let error = description.check().unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn a_turn_without_ctas_is_refused() {
    assert!(refused_design("umh", "scheduling.cta_chunk", "0").contains("a whole number from 1"));
}

#[test]
fn variants_of_a_design_that_make_sense_are_allowed() {
    for (name, path, value) in [
        ("hmg", "l2_write", "back"),
        ("software-flat", "l2_write", "back"),
        ("software-hierarchical", "l2_write", "back"),
        ("no-remote-caching", "l2_write", "back"),
        ("nhcc", "coherence.downgrade", "true"),
        ("software-flat", "coherence.invalidate", "remote"),
        ("ideal", "coherence.l1_coherent", "false"),
        ("hmg", "capacity", "numa-aware"),
        ("numa-aware-cache", "capacity.sample_time", "1000"),
        ("numa-aware-cache", "capacity.reset", "false"),
        ("hmg", "links", "infinite"),
        ("hmg", "links", "turning"),
        ("hmg", "l3_write", "through"),
        ("hmg", "l3_write", "back"),
        ("hmg", "scheduling", "interleaved"),
    ] {
        let mut description = design(name).unwrap();
        description.set(path, value).unwrap();
        assert!(description.check().is_ok(), "{name} {path}={value}");
    }
}

#[test]
fn a_design_of_ones_own_builds_on_a_preset() {
    let text = "base = \"hmg\"\nname = \"hmg-wb\"\nl2_write = \"back\"\n";
    let config: DesignConfig = Description::parse("mine.toml", text).unwrap().check().unwrap();
    assert_eq!((config.name.as_str(), config.l2_write.word()), ("hmg-wb", "back"));
}

/// Parses `text` as a design file, and checks it.
fn own(text: &str) -> Result<DesignConfig, String> {
    Description::parse("mine.toml", text).and_then(|file| file.check()).map_err(|error| error.to_string())
}

#[test]
fn a_bare_word_is_short_for_a_table_and_settings_come_in_any_order() {
    let short = own("base = \"hmg\"\nlinks = \"turning\"\n").unwrap();
    let long = own("base = \"hmg\"\n[links]\nkind = \"turning\"\nsample_time = 5000\n").unwrap();
    assert_eq!(short, long);
    for settings in [["links=turning", "links.sample_time=7"], ["links.sample_time=7", "design.links.kind=turning"]] {
        let mut designs = [design("hmg").unwrap()];
        apply(&settings, &mut machine("hmg-4x4").unwrap(), &mut designs).unwrap();
        assert_eq!(designs[0].check().unwrap().links.sample_time(), 7);
    }
}

#[test]
fn keys_of_an_option_go_when_another_replaces_it() {
    let above = own("base = \"numa-aware\"\nlinks = \"static\"\n").unwrap();
    assert_eq!(above.links.word(), "static");
    let mut set = design("numa-aware").unwrap();
    set.set("capacity", "shared").unwrap();
    assert_eq!(set.check().unwrap().capacity.word(), "shared");
    // A key that the new option also reads is kept.
    let other = own("base = \"numa-static-halves\"\ncoherence = \"software-hierarchical\"\n").unwrap();
    assert_eq!(other.options().bulk.word(), "remote");
}

#[test]
fn a_key_that_the_option_does_not_read_is_refused_at_its_place() {
    let error = own("base = \"hmg\"\n[links]\nsample_time = 9\n").unwrap_err();
    assert!(error.starts_with("mine.toml:3: links.sample_time = 9: links = \"static\" does not read it"), "{error}");
    let error = own("base = \"hmg\"\n[links]\nsample_tim = 9\n").unwrap_err();
    assert!(error.contains("no key links.sample_tim") && error.contains("links = \"static\" has kind"), "{error}");
    let error = own("base = \"hmg\"\n[links]\nkind = \"turning\"\nsample_tim = 9\n").unwrap_err();
    assert!(error.contains("did you mean sample_time?"), "{error}");
    let error = own("base = \"hmg\"\nlinks = \"spinning\"\n").unwrap_err();
    assert!(error.contains("mine.toml:2: links = spinning: expected one of \"static\", \"turning\""), "{error}");
}

#[test]
fn a_key_of_an_option_reaches_the_designs_that_chose_it() {
    let mut designs = [design("numa-memory-side").unwrap(), design("numa-turning-links").unwrap()];
    apply(&["links.sample_time=7"], &mut machine("numa-4").unwrap(), &mut designs).unwrap();
    assert_eq!(designs[0].check().unwrap().links.word(), "static");
    assert_eq!(designs[1].check().unwrap().links.sample_time(), 7);
    let mut none = [design("hmg").unwrap()];
    apply(&["links.sample_time=7"], &mut machine("numa-4").unwrap(), &mut none).unwrap();
    assert!(none[0].check().unwrap_err().to_string().contains("only turning does"));
}

#[test]
fn earlier_spellings_are_read_and_noted() {
    let text =
        "base = \"numa-coherent\"\nl2_capacity = \"numa-aware\"\npartition_sample = 1000\ninvalidate = \"remote\"\n";
    let file = Description::<DesignConfig>::parse("mine.toml", text).unwrap();
    let today = "base = \"numa-coherent\"\n[capacity]\nkind = \"numa-aware\"\nsample_time = 1000\n[coherence]\ninvalidate = \"remote\"\n";
    let mut config = own(today).unwrap();
    config.name = file.check().unwrap().name;
    assert_eq!(file.check().unwrap(), config);
    assert_eq!(file.notes().len(), 3);
    assert!(file.notes().contains(&"mine.toml:2: key l2_capacity of a design is now capacity".to_owned()));
    for (earlier, today) in <DesignConfig as DescriptionKind>::aliases() {
        let mut description = design("hmg").unwrap();
        description.set(earlier, "1").unwrap();
        assert_eq!(description.notes(), [format!("setting {earlier}=1: key {earlier} of a design is now {today}")]);
    }
}

#[test]
fn every_option_of_every_axis_is_read_by_its_word_and_documented() {
    assert_eq!(Links::options().len(), 3);
    for axis in <DesignConfig as DescriptionKind>::axes() {
        assert!(AXES.contains(&axis.name));
        for option in axis.options {
            assert!(option.about.len() > 3, "{} of {} is not documented", option.word, axis.name);
            let mut description = design("software-flat").unwrap();
            description.set(axis.name, option.word).unwrap();
            let answer = description.check().map(|_| ()).map_err(|error| error.to_string());
            assert!(answer.as_ref().map_or_else(|error| !error.contains("expected one of"), |()| true), "{answer:?}");
        }
    }
}

#[test]
fn a_design_file_is_called_by_its_stem() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(&path, "base = \"hmg\"\n").unwrap();
    assert_eq!(design(path.to_str().unwrap()).unwrap().check().unwrap().name, "mine");
    let error = design("hgm").unwrap_err().to_string();
    assert!(error.contains("there are no-remote-caching, software-flat"), "{error}");
}

#[test]
fn a_promise_may_be_given_as_a_list() {
    let mut ideal = design("ideal").unwrap();
    ideal.set("promises", "[\"nothing\"]").unwrap();
    assert!(ideal.check().is_ok());
}
