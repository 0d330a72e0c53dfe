package alerts

import "time"

const hour = time.Hour

// Stories of each alert, by its name: in one at least it fires, and in one it must
// not.
var stories = map[string][]story{
	"OncegateGone": {
		{name: "the last replica is gone", series: `oncegate_build_info{job="shop",instance="a"} 1x10`, until: 25 * time.Minute, fires: `{job="shop"}`},
		{name: "none was ever there", series: `up{job="shop",instance="a"} 1x10`, until: 10 * time.Minute, fires: `{}`},
		{name: "one shop's is gone, and another's is there", series: `
			oncegate_build_info{job="shop",namespace="web",instance="a"} 1x10
			oncegate_build_info{job="shop",namespace="staging",instance="b"} 1x40`, until: 40 * time.Minute, fires: `{job="shop", namespace="web"}`},
		{name: "another replica has its place", series: `
			oncegate_build_info{job="shop",instance="a",version="1"} 1x10
			oncegate_build_info{job="shop",instance="b",version="2"} _x10 1x30`, until: 40 * time.Minute},
		{name: "one of two is gone", series: `
			oncegate_build_info{job="shop",instance="a"} 1x10
			oncegate_build_info{job="shop",instance="b"} 1x40`, until: 40 * time.Minute},
	},
	"OncegateStoreOut": {
		{name: "out of reach", series: `
			oncegate_store_up{instance="a"} 1x5 0x10
			oncegate_store_fit{instance="a"} 1x15
			oncegate_store_up{instance="b"} 1x15`, until: 15 * time.Minute, fires: `{instance="a"}`},
		{name: "unfit", series: `
			oncegate_store_up{instance="a"} 1x15
			oncegate_store_fit{instance="a"} 1x5 0x10`, until: 15 * time.Minute, fires: `{instance="a"}`},
		{name: "a minute's outage", series: `
			oncegate_store_up{instance="a"} 1x5 0 1x10
			oncegate_store_fit{instance="a"} 1x16`, until: 15 * time.Minute},
	},
	"OncegateUnknownOld": {
		{name: "held for half an hour", series: `oncegate_unknown_oldest_seconds{scope="stripe",instance="a"} 0x5 0+60x40`, until: 45 * time.Minute, fires: `{scope="stripe"}`},
		{name: "held in a scope whose route has another name now", series: `
			oncegate_unknown_oldest_seconds{scope="payments",instance="a"} 0x45
			oncegate_claims{scope="_OTHER",state="unknown",instance="a"} 0x5 2x40`, until: 45 * time.Minute, fires: `{scope="_OTHER"}`},
		{name: "a scope whose route has another name now is settled", series: `
			oncegate_claims{scope="_OTHER",state="unknown",instance="a"} 0x30 2x10 0x30
			oncegate_claims{scope="_OTHER",state="done",instance="a"} 90x70`, until: 70 * time.Minute},
		{name: "settled in time", series: `oncegate_unknown_oldest_seconds{scope="stripe",instance="a"} 0+60x29 0x30`, until: 55 * time.Minute},
	},
	"OncegateUnfinished": {
		{name: "a sender has given up", series: `oncegate_unfinished_claims{scope="stripe",instance="a"} 0x5 2x10`, until: 15 * time.Minute, fires: `{scope="stripe"}`},
		{name: "all are done", series: `oncegate_unfinished_claims{scope="stripe",instance="a"} 0x15`, until: 15 * time.Minute},
	},
	"OncegatePossibleSecondRun": {
		{name: "one, before the new replica was scraped", series: `
			process_start_time_seconds{job="shop",instance="b"} _x5 290x5
			oncegate_possible_second_runs_total{job="shop",scope="stripe",instance="b"} _x5 1x5`, until: 10 * time.Minute, fires: `{job="shop", scope="stripe"}`},
		{name: "of long ago, and Prometheus was away", series: `
			process_start_time_seconds{job="shop",instance="b"} 0x5 _x60 0x30
			oncegate_possible_second_runs_total{job="shop",scope="stripe",instance="b"} 0x5 _x60 1x30`, until: 95 * time.Minute},
		{name: "one", series: `oncegate_possible_second_runs_total{scope="stripe",instance="a"} 0x10 1x5`, until: 15 * time.Minute, fires: `{scope="stripe"}`},
		{name: "of long ago", series: `oncegate_possible_second_runs_total{scope="stripe",instance="a"} 3x40`, until: 40 * time.Minute},
	},
	"OncegateAppFailing": {
		{name: "a third fails", series: `
			oncegate_deliveries_total{route="stripe",result="failed"} 0+1x30
			oncegate_deliveries_total{route="stripe",result="fresh"} 0+2x30`, until: 30 * time.Minute, fires: `{route="stripe"}`},
		{name: "all can't be reached, and replays go on", series: `
			oncegate_deliveries_total{route="stripe",result="unreached"} 0+1x30
			oncegate_deliveries_total{route="stripe",result="replay"} 0+100x30`, until: 30 * time.Minute, fires: `{route="stripe"}`},
		{name: "all of one shop's, beside a busy one", series: `
			oncegate_deliveries_total{job="quiet",route="stripe",result="failed"} 0+1x30
			oncegate_deliveries_total{job="busy",route="stripe",result="fresh"} 0+100x30`, until: 30 * time.Minute, fires: `{job="quiet", route="stripe"}`},
		{name: "a tenth fails", series: `
			oncegate_deliveries_total{route="stripe",result="failed"} 0+1x30
			oncegate_deliveries_total{route="stripe",result="fresh"} 0+9x30`, until: 30 * time.Minute},
		{name: "a deploy of five minutes", series: `
			oncegate_deliveries_total{route="stripe",result="failed"} 0x10 1x30
			oncegate_deliveries_total{route="stripe",result="fresh"} 0+9x40`, until: 40 * time.Minute},
	},
	"OncegateUnverified": {
		{name: "the secret was changed", series: `
			oncegate_deliveries_total{route="stripe",result="unverified"} 0+1x30
			oncegate_deliveries_total{route="stripe",result="fresh"} 90x30`, until: 30 * time.Minute, fires: `{route="stripe"}`},
		{name: "somebody tries, among many that hold", series: `
			oncegate_deliveries_total{route="stripe",result="unverified"} 0+1x30
			oncegate_deliveries_total{route="stripe",result="fresh"} 0+10x30`, until: 30 * time.Minute},
	},
	"OncegateUnkeyed": {
		{name: "no key", series: `oncegate_deliveries_total{route="stripe",result="unkeyed"} 0+1x30`, until: 30 * time.Minute, fires: `{route="stripe"}`},
		{name: "malformed", series: `oncegate_deliveries_total{route="stripe",result="malformed"} 0+1x30`, until: 30 * time.Minute, fires: `{route="stripe"}`},
		{name: "one that is odd", series: `oncegate_deliveries_total{route="stripe",result="unkeyed"} 0x5 1x30`, until: 30 * time.Minute},
	},
	"OncegateMismatch": {
		{name: "one, before the new replica was scraped", series: `
			process_start_time_seconds{job="shop",instance="b"} _x5 290x5
			oncegate_deliveries_total{job="shop",route="orders",result="mismatch",instance="b"} _x5 1x5`, until: 10 * time.Minute, fires: `{job="shop", route="orders"}`},
		{name: "of long ago, and Prometheus was away", series: `
			process_start_time_seconds{job="shop",instance="b"} 0x5 _x60 0x30
			oncegate_deliveries_total{job="shop",route="orders",result="mismatch",instance="b"} 0x5 _x60 1x30`, until: 95 * time.Minute},
		{name: "one", series: `oncegate_deliveries_total{route="orders",result="mismatch"} 0x5 1x5`, until: 10 * time.Minute, fires: `{route="orders"}`},
		{name: "none", series: `oncegate_deliveries_total{route="orders",result="fresh"} 0+1x10`, until: 10 * time.Minute},
	},
	"OncegateOverload": {
		{name: "it lasts", series: `oncegate_deliveries_total{route="stripe",result="overload"} 0x5 0+10x15`, until: 20 * time.Minute, fires: `{route="stripe"}`},
		{name: "a short storm", series: `oncegate_deliveries_total{route="stripe",result="overload"} 0x5 50x20`, until: 25 * time.Minute},
	},
	"OncegateUnclaimed": {
		{name: "one, before the new replica was scraped", series: `
			process_start_time_seconds{job="shop",instance="b"} _x5 290x5
			oncegate_deliveries_total{job="shop",route="github",result="unclaimed",instance="b"} _x5 1x5`, until: 10 * time.Minute, fires: `{job="shop", route="github"}`},
		{name: "of long ago, and Prometheus was away", series: `
			process_start_time_seconds{job="shop",instance="b"} 0x5 _x60 0x30
			oncegate_deliveries_total{job="shop",route="github",result="unclaimed",instance="b"} 0x5 _x60 1x30`, until: 95 * time.Minute},
		{name: "one", series: `oncegate_deliveries_total{route="github",result="unclaimed"} 0x5 1x5`, until: 10 * time.Minute, fires: `{route="github"}`},
		{name: "none", series: `oncegate_deliveries_total{route="github",result="unclaimed"} 0x10`, until: 10 * time.Minute},
	},
	"OncegateSilence": {
		{name: "a busy route has none for a day", every: hour, series: `oncegate_deliveries_total{route="stripe",result="fresh"} 0+10x200 2000x30`, until: 230 * hour, fires: `{route="stripe"}`},
		{name: "strangers alone come for a day", every: hour, series: `
			oncegate_deliveries_total{route="stripe",result="fresh"} 0+10x200 2000x30
			oncegate_deliveries_total{route="stripe",result="unverified"} 0+1x230`, until: 230 * hour, fires: `{route="stripe"}`},
		{name: "a quiet route has none for a day", every: hour, series: `oncegate_deliveries_total{route="stripe",result="fresh"} 0+0.25x200 50x30`, until: 230 * hour},
		{name: "a busy route goes on", every: hour, series: `oncegate_deliveries_total{route="stripe",result="fresh"} 0+10x230`, until: 230 * hour},
	},
	"OncegateLateDuplicates": {
		{name: "resent a day later", every: hour, series: `
			oncegate_duplicate_age_seconds_count{route="stripe"} 0+2x48
			oncegate_duplicate_age_seconds_bucket{route="stripe",le="86400.0"} 0x48`, until: 48 * hour, fires: `{route="stripe"}`},
		{name: "resent within the day", every: hour, series: `
			oncegate_duplicate_age_seconds_count{route="stripe"} 0+2x48
			oncegate_duplicate_age_seconds_bucket{route="stripe",le="86400"} 0+2x48`, until: 48 * hour},
	},
	"OncegateSlowApp": {
		{name: "many", series: `oncegate_slow_answers_total{route="stripe"} 0+1x30`, until: 30 * time.Minute, fires: `{route="stripe"}`},
		{name: "one", series: `oncegate_slow_answers_total{route="stripe"} 0x5 1x25`, until: 30 * time.Minute},
	},
	"OncegateJournalDeep": {
		{name: "owed for ten minutes", series: `oncegate_journal_depth{instance="a"} 0x5 3x15`, until: 20 * time.Minute, fires: `{instance="a"}`},
		{name: "paid in five", series: `oncegate_journal_depth{instance="a"} 0x5 3x5 0x20`, until: 30 * time.Minute},
	},
	"OncegateJournalBroken": {
		{name: "one, before the new replica was scraped", series: `
			process_start_time_seconds{job="shop",instance="b"} _x5 290x5
			oncegate_journal_errors_total{job="shop",instance="b"} _x5 1x5`, until: 10 * time.Minute, fires: `{instance="b", job="shop"}`},
		{name: "of long ago, and Prometheus was away", series: `
			process_start_time_seconds{job="shop",instance="b"} 0x5 _x60 0x30
			oncegate_journal_errors_total{job="shop",instance="b"} 0x5 _x60 1x30`, until: 95 * time.Minute},
		{name: "one write", series: `oncegate_journal_errors_total{instance="a"} 0x5 1x5`, until: 10 * time.Minute, fires: `{instance="a"}`},
		{name: "none", series: `oncegate_journal_errors_total{instance="a"} 0x10`, until: 10 * time.Minute},
	},
	"OncegateLapses": {
		{name: "one, before the new replica was scraped", series: `
			process_start_time_seconds{job="shop",instance="b"} _x5 290x5
			oncegate_lapses_total{job="shop",scope="stripe",instance="b"} _x5 1x5`, until: 10 * time.Minute, fires: `{job="shop", scope="stripe"}`},
		{name: "of long ago, and Prometheus was away", series: `
			process_start_time_seconds{job="shop",instance="b"} 0x5 _x60 0x30
			oncegate_lapses_total{job="shop",scope="stripe",instance="b"} 0x5 _x60 1x30`, until: 95 * time.Minute},
		{name: "a lease was lost", series: `
			oncegate_lapses_total{scope="stripe",instance="a"} 0x5 1x5
			oncegate_fenced_writes_total{scope="stripe",instance="a"} 0x10`, until: 10 * time.Minute, fires: `{scope="stripe"}`},
		{name: "a write was fenced", series: `
			oncegate_lapses_total{scope="stripe",instance="a"} 0x10
			oncegate_fenced_writes_total{scope="stripe",instance="a"} 0x5 1x5`, until: 10 * time.Minute, fires: `{scope="stripe"}`},
		{name: "of long ago", series: `oncegate_lapses_total{scope="stripe",instance="a"} 7x60`, until: 60 * time.Minute},
	},
	"OncegateStoreSlow": {
		{name: "two in a hundred take a second", series: `
			oncegate_store_trip_duration_seconds_bucket{op="write",le="0.5"} 0+98x30
			oncegate_store_trip_duration_seconds_bucket{op="write",le="1"} 0+100x30
			oncegate_store_trip_duration_seconds_bucket{op="write",le="+Inf"} 0+100x30`, until: 30 * time.Minute, fires: `{op="write"}`},
		{name: "all take milliseconds", series: `
			oncegate_store_trip_duration_seconds_bucket{op="write",le="0.005"} 0+100x30
			oncegate_store_trip_duration_seconds_bucket{op="write",le="+Inf"} 0+100x30`, until: 30 * time.Minute},
	},
	"OncegateBackgroundFailing": {
		{name: "each round", series: `oncegate_background_errors_total{instance="a"} 0+1x40`, until: 40 * time.Minute, fires: `{instance="a"}`},
		{name: "once", series: `oncegate_background_errors_total{instance="a"} 0x5 1x40`, until: 45 * time.Minute},
	},
	"OncegatePurgeStalled": {
		{name: "nothing was removed for an hour", series: `
			oncegate_purge_last_success_timestamp_seconds{job="shop",instance="a"} 0+60x10 600x90
			oncegate_purge_last_success_timestamp_seconds{job="other",instance="c"} 0+60x100`, until: 100 * time.Minute, fires: `{job="shop"}`},
		{name: "no evidence was removed for an hour", series: `
			oncegate_evidence_purge_last_success_timestamp_seconds{job="shop",instance="a"} 0+60x10 600x90
			oncegate_evidence_purge_last_success_timestamp_seconds{job="shop",instance="b"} 0+60x100`, until: 100 * time.Minute, fires: `{instance="a", job="shop"}`},
		{name: "more comes than is removed", series: `
			oncegate_records_past_retention{job="shop",instance="a"} 20000x40
			oncegate_claims{job="shop",instance="a",scope="stripe",state="done"} 30000x40
			oncegate_claims{job="shop",instance="a",scope="github",state="done"} 20000x40`, until: 40 * time.Minute, fires: `{job="shop"}`},
		{name: "another replica has taken over", series: `
			oncegate_purge_last_success_timestamp_seconds{job="shop",instance="a"} 0+60x10 600x90
			oncegate_purge_last_success_timestamp_seconds{job="shop",instance="b"} _x10 600+60x90`, until: 100 * time.Minute},
		{name: "a large store is purged in turns", series: `
			oncegate_records_past_retention{job="shop",instance="a"} 20000x40
			oncegate_claims{job="shop",instance="a",scope="stripe",state="done"} 1000000x40`, until: 40 * time.Minute},
	},
	"OncegateWitnessSilent": {
		{name: "it can't be asked", series: `oncegate_witness_answers_total{scope="stripe",said="nothing"} 0+1x40`, until: 40 * time.Minute, fires: `{scope="stripe"}`},
		{name: "it says no", series: `
			oncegate_witness_answers_total{scope="stripe",said="nothing"} 0x40
			oncegate_witness_answers_total{scope="stripe",said="no"} 0+5x40`, until: 40 * time.Minute},
	},
	"OncegateReloadFailed": {
		{name: "one was refused", series: `oncegate_config_reloads_total{instance="a",result="failed"} 0x5 1x5`, until: 10 * time.Minute, fires: `{instance="a"}`},
		{name: "one was taken over", series: `
			oncegate_config_reloads_total{instance="a",result="failed"} 0x10
			oncegate_config_reloads_total{instance="a",result="done"} 0x5 1x5`, until: 10 * time.Minute},
	},
	"OncegateEvidenceDropped": {
		{name: "some", series: `oncegate_evidence_dropped_total{instance="a"} 0x5 40x5`, until: 10 * time.Minute, fires: `{instance="a"}`},
		{name: "none", series: `oncegate_evidence_dropped_total{instance="a"} 0x10`, until: 10 * time.Minute},
	},
}
