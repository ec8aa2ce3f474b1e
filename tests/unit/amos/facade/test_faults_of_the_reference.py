"""Faults seen in the reference implementation, each with the test that shows ours does right.

The right column is ``folder/file.py::test`` below ``tests/unit/amos``; a test that is renamed or removed fails here.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]

FAULTS = {
    # isolation between users
    "an actor whose id is the beginning of another's sees the other's memory": "facade/test_isolation.py::test_an_actor_never_sees_one_whose_name_begins_the_same",
    "set_context, then build_messages: the old user's profile": "facade/test_isolation.py::test_after_set_context_every_verb_means_the_new_user",
    "set_context, then replace_profile: the old user's file is overwritten": "facade/test_isolation.py::test_after_set_context_every_verb_means_the_new_user",
    "four tasks with four users: all turns in one file": "facade/test_isolation.py::test_users_at_work_at_the_same_time_never_cross",
    "a call awaited after set_context acts for the wrong user": "facade/test_isolation.py::test_a_call_keeps_the_handle_it_was_made_with",
    "search returns another agent's sessions": "facade/test_isolation.py::test_an_agent_never_sees_another_agents_sessions",
    "any actor rewrites what is shared": "facade/test_isolation.py::test_what_is_everybodys_or_anothers_is_not_changed_by_a_user",
    "list_by_tag lists all actors' files": "memory/test_index.py::test_only_the_users_own_and_shared_files_are_listed",
    # names
    "names with .. or / write, read and delete outside their place": "facade/test_isolation.py::test_no_verb_takes_a_name_that_leaves_its_place",
    "a hostile actor makes folders outside users/": "facade/test_create.py::test_a_hostile_name_makes_nothing_anywhere",
    "1,000 hostile names": "ground/test_names.py::test_a_hostile_name_is_refused_or_is_one_component_on_every_system",
    "NFC and NFD are two users": "ground/test_names.py::test_both_ways_to_write_an_accent_are_one_name",
    "delete_knowledge of the last entry removes other files": "facade/test_isolation.py::test_deleting_the_last_entry_leaves_other_files_of_the_domain",
    "an address leaves the root": "ground/test_addresses.py::test_an_address_cannot_leave_the_root",
    "users/{a}/knowledge and the short forms are not resolved": "ground/test_addresses.py::test_every_form_of_the_protocol_is_read_both_ways",
    # access lists
    "no read or write is ever checked": "facade/test_isolation.py::test_every_door_asks_the_access_list_and_a_broken_one_denies",
    "a broken acl.json falls back to a wider list": "acl/test_acl_rules.py::test_a_broken_list_leaves_the_owner_reading_and_denies_the_rest",
    "assets/tools/* meets assets/tools_evil/x": "acl/test_acl_rules.py::test_patterns_are_compared_component_by_component",
    "anybody writes anybody's list": "acl/test_acl_rules.py::test_only_the_owner_and_the_system_change_a_list",
    "a grant to another has no effect": "facade/test_isolation.py::test_a_grant_to_another_works",
    "auto_grant_actor overwrites the user's list at each start": "facade/test_create.py::test_auto_grant_writes_a_list_for_whoever_has_none_and_never_over_one",
    # loss and concurrency
    "turns added while the summariser runs are lost": "memory/test_compression.py::test_turns_that_arrive_while_the_model_thinks_survive",
    "four processes with compression lose and double turns": "facade/test_processes.py::test_processes_that_write_one_session_lose_and_double_nothing",
    "of 50 appends to a profile one is kept": "memory/test_stable.py::test_fifty_appends_at_once_keep_fifty",
    "four processes x 100 appends keep 351": "facade/test_processes.py::test_processes_that_append_to_one_profile_keep_every_line",
    "a crash between archive and rewrite doubles the head": "memory/test_compression.py::test_a_kill_at_any_step_loses_and_doubles_nothing",
    "an empty summary overwrites the old one": "memory/test_compression.py::test_a_summariser_that_does_not_work_changes_nothing",
    "add_turn raises after storing when the summariser is down": "facade/test_verbs.py::test_a_turn_is_stored_without_error_when_no_summary_can_be_had",
    "a message with U+2028 disappears": "memory/test_sessions.py::test_damage_never_makes_a_session_unreadable",
    "a turn after a torn line is lost with it": "memory/test_sessions.py::test_only_the_torn_line_is_lost",
    "one foreign byte makes the session unreadable": "memory/test_sessions.py::test_damage_never_makes_a_session_unreadable",
    "a lone surrogate loses the turn": "memory/test_sessions.py::test_a_lone_surrogate_costs_a_sign_and_not_the_turn",
    "a BOM loses the first message and gets into the prompt": "memory/test_stable.py::test_bom_and_invisible_signs_do_not_reach_the_prompt",
    "a BOM in version.txt": "facade/test_create.py::test_small_differences_of_the_version_file_are_tolerated",
    "a list or a string as a line": "ground/test_formats.py::test_damage_costs_at_most_its_own_line",
    "a corrupt index.json loses all tags in silence": "memory/test_index.py::test_a_corrupt_index_is_kept_aside_and_made_anew_from_the_files",
    "an update of an entry loses its tags": "memory/test_index.py::test_a_change_of_a_file_keeps_its_tags",
    "an empty lock file blocks for ever": "ground/test_locks.py::test_a_lock_file_a_kill_left_empty_is_recovered",
    "a dead holder's lock is waited for": "ground/test_locks.py::test_the_lock_of_a_holder_that_is_gone_is_taken_at_once",
    "three holders at once when the first is slow": "ground/test_locks.py::test_the_lock_of_a_holder_that_lives_is_waited_for",
    "a finisher deletes another's lock": "ground/test_locks.py::test_a_lock_that_became_anothers_is_not_deleted",
    "temp files are never swept": "ground/test_files.py::test_leftovers_are_swept_and_nothing_else",
    "a session that is not the store's is never compressed": "facade/test_verbs.py::test_a_session_that_is_not_the_default_is_compressed_just_the_same",
    "add_turn reads the whole file": "memory/test_sessions.py::test_adding_reads_the_same_few_bytes_however_long_the_session_is",
    "with 20 turns ten are in neither history nor summary": "facade/test_verbs.py::test_twenty_turns_at_a_bound_of_twenty_are_all_in_the_prompt",
    "the history window slides, the prefix is not append-only": "facade/test_verbs.py::test_between_two_compressions_the_prefix_is_the_same_bytes_and_no_turn_is_missing",
    "delete_message leaves half a turn, and hits its neighbour": "memory/test_sessions.py::test_of_two_turns_in_one_second_only_the_one_meant_goes",
    "the version moves when nothing changed, and not with a shared soul": "memory/test_stable.py::test_a_version_moves_when_and_only_when_the_prefix_of_that_scope_changed",
    "summaries of two sessions bump each other": "memory/test_stable.py::test_summaries_count_by_session",
    "cache_version.txt that is no object raises": "memory/test_stable.py::test_a_broken_version_file_is_mended_and_not_fatal",
    "events are not awaited": "facade/test_verbs.py::test_events_are_delivered_before_the_verb_returns_and_one_can_stop_listening",
    "contents are copied into the event log, which grows": "facade/test_verbs.py::test_the_event_log_knows_ids_and_never_contents",
    "the log never rotates": "events/test_events.py::test_the_log_rotates_and_stays_bounded",
    "a payload that is no JSON raises out of the caller": "events/test_events.py::test_a_payload_that_is_no_json_is_no_error",
    "a message of any length is accepted": "facade/test_verbs.py::test_texts_that_are_too_long_are_refused",
    "two task managers run a task twice": "tasks/test_tasks.py::test_two_managers_on_one_root_run_each_task_once",
    "timeouts of tasks are ignored": "tasks/test_tasks.py::test_a_time_limit_holds_for_coroutines",
    "a task in running/ is never recovered": "tasks/test_tasks.py::test_what_a_dead_process_left_running_is_done_again",
    "a task file without priority stops the scheduler": "tasks/test_tasks.py::test_a_file_without_attempts_and_priority_is_run",
    "a corrupt task file stays": "tasks/test_tasks.py::test_a_corrupt_file_is_put_aside_and_blocks_nobody",
    "a result that is no JSON repeats the side effects": "tasks/test_tasks.py::test_a_result_that_is_no_json_is_kept_as_its_repr_and_not_done_again",
    "remove_profile_fact('') empties the profile": "facade/test_verbs.py::test_what_makes_no_sense_is_an_error_and_changes_nothing",
    "append_profile('', x) writes an empty heading": "facade/test_verbs.py::test_what_makes_no_sense_is_an_error_and_changes_nothing",
    "an unknown mode, scope or top_k is silently wrong": "facade/test_verbs.py::test_what_makes_no_sense_is_an_error_and_changes_nothing",
    "a patch replaces sections that begin alike and stops at a nested one": "memory/test_sections.py::test_a_section_is_replaced_with_what_is_nested_in_it",
    "the archive day changes with the host's time zone": "memory/test_compression.py::test_the_archive_day_is_the_turns_own_in_the_configured_zone",
    "create(root_dir=...) raises TypeError": "facade/test_create.py::test_both_call_forms_open_a_root",
    # search
    "a Chinese sentence finds nothing": "search/test_search.py::test_a_chinese_sentence_finds_what_its_words_are_in",
    "kana, hangul, Cyrillic are no words": "search/test_search.py::test_words_of_every_script_are_found",
    "names of files are not searched": "search/test_search.py::test_names_are_searched",
    "the running session is injected into itself": "facade/test_verbs.py::test_the_running_session_is_not_injected_into_itself",
    "an entry added later scores 0 until a restart": "search/test_search.py::test_tags_are_searched",
    # packages
    "a link member writes outside the root": "bundle/test_bundle.py::test_links_are_left_out_and_what_goes_through_them_lands_inside",
    "the content of links is exported": "bundle/test_bundle.py::test_leftovers_links_and_the_search_index_stay_at_home",
    "200 MB of zeros are unpacked": "bundle/test_stream.py::test_two_hundred_megabytes_of_zeros_are_refused_long_before_they_are_unpacked",
    "overwrite=False overwrites": "bundle/test_bundle.py::test_overwrite_is_honoured_for_every_file",
    "a planted acl.json and tool code are taken": "bundle/test_bundle.py::test_tools_arrive_as_drafts_and_access_lists_not_at_all",
    "actor_mapping leaves the root": "bundle/test_bundle.py::test_a_mapping_that_leaves_its_place_is_refused",
    "a package without version is accepted": "bundle/test_bundle.py::test_a_package_without_its_head_is_refused",
    "tags and tasks are lost, the index is not rebuilt": "facade/test_verbs.py::test_a_users_package_goes_into_another_root",
    "an import that fails midway leaves half of it": "bundle/test_bundle.py::test_an_import_that_fails_midway_is_undone",
    "other users' ids leak": "bundle/test_bundle.py::test_a_package_of_one_user_tells_no_other_users_id",
}  # fmt: skip


@pytest.mark.parametrize(("fault", "place"), FAULTS.items(), ids=FAULTS)
def test_each_fault_has_the_test_that_shows_ours_does_right(fault, place):
    file, _, name = place.partition("::")
    assert f"def {name}(" in (HERE / file).read_text("utf-8"), fault
