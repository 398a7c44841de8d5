def test_keys_within_fields(tmp_path, dedupe):
    lines = [b'{"n": {"x": 1, "y": 1}}\n', b'{"n": {"x": 1, "y": 2}}\n', b'{"n": {"x": 2}}\n', b'{"n.x": 2}\n']
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    ended = dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "n.x")
    assert ended.out == lines[0] + lines[2]
    assert "warning" not in ended.err
    assert "no record has the key field n.z" in dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "n.x,n.z").err
    (tmp_path / "b.jsonl").write_bytes(b'{"n": {"x": null}}\n{"n": {"x": null, "y": 1}}\n')  # missing, not absent
    ended = dedupe(tmp_path / "b.jsonl", "--window", 9, "--key", "n.x")
    assert (ended.out, "warning" in ended.err) == (b'{"n": {"x": null}}\n', False)
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 5}\n')
    assert "it has none of the key fields n.x" in dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "n.x").err


def test_json_lines_are_passed_on_byte_for_byte(tmp_path, dedupe):
    lines = [
        b'{"ip": "a", "url": "/", "n": 1}\n',
        b'{"url":"/","ip":"a"}\n',  # a repeat
        b' {"ip": "a" , "url": null}\n',
        b'{"ip": "a"}\r\n',  # an absent field is as missing as null: a repeat
        b'{"ip": 5, "url": "/"}\n',
        b'{"ip": 5.0, "url": "/"}\n',  # a repeat
        b'{"ip": "5", "url": "/"}\n',
        b'{"ip": "\\u00e4", "url": "/"}\n',
        '{"ip": "ä", "url": "/"}'.encode(),  # a repeat
    ]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    ended = dedupe(tmp_path / "a.jsonl", "--window", 100, "--key", "ip,url")
    assert ended.status == 0
    assert ended.out == b"".join(lines[i] for i in (0, 2, 4, 6, 7))


def test_json_lines_without_a_key(tmp_path, dedupe):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": [1]}\n{"a": [2]}\n{"a": [1]}')
    assert dedupe(tmp_path / "a.jsonl", "--window", 9).out == b'{"a": [1]}\n{"a": [2]}\n'


def test_a_key_field_that_never_occurs_is_warned_of(tmp_path, dedupe):
    (tmp_path / "a.jsonl").write_bytes(b'{"ip": "a"}\n{"ip": "b", "url": null}\n')
    assert "warning" not in dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "ip,url").err
    ended = dedupe(tmp_path / "a.jsonl", "--window", 9, "--key", "ip,uri")
    assert ended.status == 0
    assert "warning: no record has the key field uri\n" in ended.err
