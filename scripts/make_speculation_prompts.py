"""Writes bench/speculation/prompts.jsonl: what `quench bench-engine --prompts` measures speculation on, ten prompts of each kind.

  free    nothing to copy from: speculation must not cost anything
  repeat  a text to be said again word for word
  copy    a passage to be quoted from
  edit    code to be given back with a small change

usage: make_speculation_prompts.py
"""

import json
import pathlib

OUT = pathlib.Path(__file__).resolve().parent.parent / "bench/speculation/prompts.jsonl"

FREE = [
    "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "Explain to a child why the sky is blue.",
    "Give me five ideas for a weekend trip in autumn.",
    "What are the advantages and disadvantages of living in a big city?",
    "Describe the taste of a ripe mango to somebody who has never eaten one.",
    "How does a bicycle stay upright while it moves?",
    "Write a letter to a friend who has moved to another country.",
    "What should I think about before I buy a used car?",
    "Compare the life of a farmer a hundred years ago with that of one today.",
    "Invent a holiday and explain how people celebrate it.",
]

PASSAGES = [
    "The river Elbe rises in the Krkonose mountains at 1,386 metres above the sea. It flows 1,094 kilometres through Bohemia and northern Germany, past "
    "Dresden, Magdeburg and Hamburg, and enters the North Sea at Cuxhaven. Its largest tributary is the Vltava, which joins it at Melnik.",
    "A heat pump moves heat from a cold place to a warm one. A refrigerant evaporates outside at a low temperature and takes up heat; a compressor raises its "
    "pressure and temperature; in the house it condenses and gives the heat to the water of the heating. Each kilowatt hour of electricity moves three to four of heat.",
    "The committee met on the third of March in room 214. Present were Dr. Alvarez, Ms. Okafor, Mr. Lindqvist and Prof. Tanaka. It was decided that the "
    "laboratory will be closed from the tenth to the seventeenth of April, and that the budget for the new microscope is raised to 48,500 euros.",
    "Rye bread needs sourdough, because the flour lacks the gluten that holds wheat dough together. Mix 500 grams of rye flour with 450 millilitres of warm water, "
    "150 grams of sourdough and 11 grams of salt. Let the dough rest for three hours, and bake it for an hour, first at 250 degrees and then at 200.",
    "The treaty was signed in the town hall of Munster on the twenty-fourth of October 1648. It ended a war of thirty years, gave the princes the right to "
    "choose the religion of their lands, and recognised the independence of the Netherlands and of Switzerland.",
    "Bees tell each other where flowers are by dancing. A bee that has found a source of food runs in a figure of eight on the comb; the angle of the middle line to "
    "the vertical is that between the sun and the flowers, and the longer the bee waggles, the farther away they are.",
    "The warranty covers defects of material and workmanship for twenty-four months from the day of delivery. It does not cover the battery, the seals, damage by "
    "water, or repairs by third parties. To make a claim, send the device with the receipt to the address on the last page.",
    "The Voyager 1 probe was launched on the fifth of September 1977 from Cape Canaveral. It passed Jupiter in March 1979 and Saturn in November 1980, and left the "
    "heliosphere in August 2012. Its transmitter has a power of 23 watts, and its signals take more than 22 hours to reach the Earth.",
    "When you arrive, take the bus number 42 from platform C to Museum Square. Walk past the fountain, turn left into Baker Lane, and ring at number 17, second "
    "floor. The key for the cellar hangs behind the door, and the password of the network is on the refrigerator.",
    "Glass is made of quartz sand, soda and lime. The soda lowers the temperature at which the sand melts from 1,700 to about 1,500 degrees, and the lime keeps the "
    "glass from dissolving in water. Molten glass is poured on a bath of liquid tin, where it spreads to a sheet of even thickness.",
]

QUESTIONS = [
    "Quote the sentence that says where the river enters the sea.",
    "Quote the sentences that explain how the heat gets into the house.",
    "Who was present? Answer with the sentence from the text.",
    "List the ingredients with their amounts, exactly as the text gives them.",
    "What did the treaty do? Answer with the words of the text.",
    "Quote what the text says about the angle of the middle line.",
    "What is not covered? Answer with the sentence from the text.",
    "Quote the sentence about the planets that the probe passed.",
    "Repeat the way from the bus to the door as the text describes it.",
    "Quote the sentence that says what the soda and the lime do.",
]

CODE = [
    ("def area(width, height):\n    if width < 0 or height < 0:\n        raise ValueError('negative size')\n    return width * height\n\n\nprint(area(3, 4))\n", "Rename the "
     "function area to rectangle_area."),
    ("for i in range(10):\n    total = 0\n    for j in range(i):\n        total += j\n    print(i, total)\n", "Let the outer loop run to 20 instead of 10."),
    ("#include <stdio.h>\n\nint main(void) {\n  int sum = 0;\n  for (int i = 1; i <= 100; i++) {\n    sum += i;\n  }\n  printf(\"%d\\n\", sum);\n  return 0;\n}\n", "Sum "
     "the numbers up to 1000."),
    ("function greet(name) {\n  const hour = new Date().getHours();\n  if (hour < 12) {\n    return 'Good morning, ' + name;\n  }\n  return 'Hello, ' + name;\n}\n", "Rename "
     "the parameter name to person."),
    ("SELECT name, city, amount\nFROM orders\nJOIN customers ON orders.customer_id = customers.id\nWHERE amount > 100\nORDER BY amount DESC;\n", "Change the limit from "
     "100 to 250."),
    ("class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n        self.items.append(item)\n\n    def pop(self):\n        return "
     "self.items.pop()\n", "Add a method size that returns the number of items."),
    ("<ul>\n  <li><a href=\"/home\">Home</a></li>\n  <li><a href=\"/news\">News</a></li>\n  <li><a href=\"/about\">About</a></li>\n</ul>\n", "Add a fourth entry for "
     "/contact."),
    ("def read_numbers(path):\n    numbers = []\n    with open(path) as file:\n        for line in file:\n            numbers.append(int(line))\n    return numbers\n", "Use "
     "float instead of int."),
    ("fn largest(values: &[i32]) -> i32 {\n    let mut best = values[0];\n    for &value in values {\n        if value > best {\n            best = value;\n        }\n    }\n    "
     "best\n}\n", "Make it find the smallest value."),
    ("server:\n  host: localhost\n  port: 8080\n  timeout_seconds: 30\nlog:\n  level: info\n  file: server.log\n", "Change the port to 9090."),
]


def lines():
    for prompt in FREE:
        yield "free", prompt
    for passage in PASSAGES:
        yield "repeat", f"Repeat the following text three times, word for word:\n\n{passage}"
    for passage, question in zip(PASSAGES, QUESTIONS):
        yield "copy", f"{passage}\n\n{question}"
    for code, change in CODE:
        yield "edit", f"Here is some code:\n\n```\n{code}```\n\n{change} Give the whole code back."


def main():
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("".join(json.dumps({"kind": kind, "prompt": prompt}) + "\n" for kind, prompt in lines()))


main()
