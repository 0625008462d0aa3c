from pixivflow.config.positions import find_lines

TEXT = '''\
# a comment
[storage]
path = "x"

[[targets]]
id = "one"
tags = [
  "a = b",
]
[targets.fields]
"odd name" = """
[not.a.table]
not_a_key = 1
"""
after = 1
[[targets]]
id = "two" # [[targets]]
fields.x = "y"
[ routes . "in" ]
type = \'folder\'
'''


def test_every_table_and_key_is_found_on_its_line():
    assert find_lines(TEXT) == {
        ("storage",): 2,
        ("storage", "path"): 3,
        ("targets", 0): 5,
        ("targets", 0, "id"): 6,
        ("targets", 0, "tags"): 7,
        ("targets", 0, "fields"): 10,
        ("targets", 0, "fields", "odd name"): 11,
        ("targets", 0, "fields", "after"): 15,
        ("targets", 1): 16,
        ("targets", 1, "id"): 17,
        ("targets", 1, "fields", "x"): 18,
        ("routes", "in"): 19,
        ("routes", "in", "type"): 20,
    }


def test_lines_that_end_with_a_carriage_return_are_found_too():
    assert find_lines('[storage]\r\npath = "x"\r\n') == {("storage",): 1, ("storage", "path"): 2}
