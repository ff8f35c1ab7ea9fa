"""English as it is read aloud: laws for any text, and a table of what people say."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tutti.text.aligned_text import AlignedText
from tutti.text.normalize import guesses, normalize
from tutti.text.options import Normalization

pieces = st.sampled_from(
    str.split(
        "1 5 21 105 1999 2024 1,234 3.14 $5.20 £3m €5-€10 50¢ 10kg 20°C -5°F 5% 3:30 15:45 pm Jan Jan. 5th 1/2 "
        "1/5/2024 2024-01-05 '90s 1980s 10-15 16:9 +44 555-1234 v2.0.1 1.2.3 127.0.0.1 a@b.co www.a.com "
        "http://x.y/z?q=1 /usr/bin report.pdf C:\\x #1 #tag @me 4K MP3 F-16 COVID-19 H2O x86_64 C++ 0xFF 5'11\" "
        "1920x1080 3x x^2 10^6 1e-5 ± ≥ < > = + × & @ % # ~ § © ™ • → ° / \\ | _ * ( ) [ ] “ ” ½ 2½ ² ③ ٣ ५ Dr. St. "
        "No. p. e.g. etc. VIII Henry World War II the in a and word. word, \ufffc — … - -- ' \" $ € 00 007 "
        "1234567890123 1,2,3 1:2:3 1/2/3 1.5.2 1-2-3 .5 5. k m s 10s 6' Ctrl+C YoY TL;DR "
        "1,50,000 1'200.50 1.299,00 R$ CHF 5-Mar-24 2024/03/05 exp. 12/26 Q1'24 1:59:40.2 273.15 K mg/kg/day 3x/day "
        '40°26\'46"N 1-800-FLOWERS SO4 2- Fe³⁺ ¹⁴C ΔG 25℃ 7/8" sq. ft. kΩ 0600 hrs 14h05 2m30s '
        "Gen. 1:1-3 fe80::1 802.11ax 20.x 49ers idk gr8 u 156/3 at lunch N. Clark St. A380 v. "
        "Jan-Mar Monday - $8M HTTP 404 GB drive wait"
    )
)
writing = (
    st.lists(st.tuples(pieces, st.sampled_from(["", " ", " ", " "])), max_size=12).map(
        lambda parts: "".join(piece + gap for piece, gap in parts)
    )
    | st.text(st.sampled_from("0123456789.,:/-$€£%°'\"+=x^@#kmsAIVab \ufffc½²"), max_size=30)
    | st.text(max_size=30)
)
codes = st.sampled_from(["en-us", "en-gb", "en-in"])


def normalized(written: str, code: str = "en-us") -> str:
    return normalize(AlignedText.of(written), code).text


@given(writing, codes)
@example("0:00:00", "en-us")
def test_no_digit_is_left(written: str, code: str) -> None:
    assert not [char for char in normalized(written, code) if char.isdigit()]


@given(writing, codes)
def test_sources_are_in_order_and_inside_the_text(written: str, code: str) -> None:
    spoken = normalize(AlignedText.of(written), code)
    assert len(spoken.text) == len(spoken.starts) == len(spoken.ends)
    assert list(spoken.starts) == sorted(spoken.starts)
    assert list(spoken.ends) == sorted(spoken.ends)
    assert all(0 <= a < b <= len(written) for a, b in zip(spoken.starts, spoken.ends, strict=True))


@given(writing, codes)
def test_every_letter_and_digit_is_in_a_source(written: str, code: str) -> None:
    spoken = normalize(AlignedText.of(written), code)
    read = {i for a, b in zip(spoken.starts, spoken.ends, strict=True) for i in range(a, b)}
    assert not [(i, char) for i, char in enumerate(written) if char.isalnum() and i not in read]


@given(writing, codes)
def test_placeholders_are_unchanged(written: str, code: str) -> None:
    spoken = normalize(AlignedText.of(written), code)
    kept = [spoken.starts[i] for i, char in enumerate(spoken.text) if char == "\ufffc"]
    assert kept == [i for i, char in enumerate(written) if char == "\ufffc"]


@given(st.lists(st.from_regex(r"[A-Z]?[a-z]{3,12}('s|-[a-z]{3,9})?[,;:!?]?", fullmatch=True), max_size=12), codes)
def test_plain_words_are_unchanged(words: list[str], code: str) -> None:
    text = " ".join(words)
    assert normalized(text, code) == text


@given(writing, codes)
def test_a_second_pass_changes_nothing(written: str, code: str) -> None:
    once = normalized(written, code)
    assert not [char for char in normalized(once, code) if char.isdigit()]


def test_words_of_chats_can_be_left_as_they_are() -> None:
    spoken = normalize(AlignedText.of("idk, thx"), "en-us", Normalization(chat_normalization=False))
    assert spoken.text == "idk, thx"


def test_all_words_of_an_amount_have_its_source() -> None:
    spoken = normalize(AlignedText.of("It cost $5.20 then."), "en-us")
    start = spoken.text.index("five")
    assert spoken.text[start:-6] == "five dollars and twenty cents"
    assert spoken.source(start, len(spoken.text) - 6) == (8, 13)


def test_the_parts_of_a_date_have_their_own_sources() -> None:
    spoken = normalize(AlignedText.of("On Jan. 5, 2024"), "en-us")
    assert spoken.text == "On January fifth, twenty twenty-four"
    assert [spoken.source(*place) for place in ((3, 10), (11, 16), (18, 36))] == [(3, 7), (8, 9), (11, 15)]


@pytest.mark.parametrize(
    "text",
    [
        "I am not in a mix of vivid civil mild XL shirts.",
        "Nothing to see here: just words, quotes \"like this\" and 'that'.",
        "NASA, the FBI's CEOs and HELLO WORLD stay as they are.",
        "How're you? He'd've said so - or not — well…",
        "In the U.S. we can do it.",
        "He sat in the sun. No. I may march.",
        "naïve café résumé",
    ],
)
def test_text_without_figures_is_unchanged(text: str) -> None:
    assert normalized(text) == text


TABLE = """
# whole numbers
0 | zero
7 apples | seven apples
13 | thirteen
21 | twenty-one
100 | one hundred
105 | one hundred five
999 | nine hundred ninety-nine
1,000 | one thousand
1,001 | one thousand one
12,345 | twelve thousand three hundred forty-five
1,000,000 | one million
1000000 | one million
2,500,000,000 | two billion five hundred million
007 | double oh seven
12345678901 | one two three four five six seven eight nine zero one
-7 degrees | minus seven degrees
10000 steps | ten thousand steps
100+ | one hundred plus
~50 people | about fifty people
# decimals and powers
3.14 | three point one four
0.5 | zero point five
.5 | zero point five
1.5e10 | one point five times ten to the tenth
3e-5 | three times ten to the minus fifth
6.02x10^23 | six point zero two times ten to the twenty-third
10^6 | ten to the sixth
x^2 + y^3 | x squared plus y cubed
x² | x squared
2**3 | two cubed
# figures in the groups of other countries
12,34,567 people | one million two hundred thirty-four thousand five hundred sixty-seven people
8'815'385 | eight million eight hundred fifteen thousand three hundred eighty-five
1.000.000 | one million
519 562 people | five hundred nineteen thousand five hundred sixty-two people
3 450 000 | three million four hundred fifty thousand
100 200 300 | one hundred two hundred three hundred
0,5 | zero point five
3,14159 | three point one four one five nine
3,5 kg | three point five kilograms
chapters 3,5 | chapters three,five
1B users | one billion users
+0.75 | plus zero point seven five
# ordinals
1st | first
2nd | second
3rd place | third place
12th | twelfth
20th | twentieth
21ST | twenty-first
100th | one hundredth
2nd-century art | second-century art
# years
in 1999 | in nineteen ninety-nine
in 2005 | in two thousand five
in 2000 | in two thousand
in 2024 | in twenty twenty-four
in 1900 | in nineteen hundred
in 1905 | in nineteen oh five
in 1066 | in ten sixty-six
1066 AD | ten sixty-six AD
44 BC | forty-four BC
AD 70 | AD seventy
500 B.C. was long ago | five hundred BC was long ago
the 1800s | the eighteen hundreds
the 1990s | the nineteen nineties
the 2000s | the two thousands
the 2010s | the twenty tens
the '90s | the nineties
in her 30s | in her thirties
class of '99 | class of ninety-nine
mid-1980s | mid-nineteen eighties
1990-95 | nineteen ninety to ninety-five
1939-1945 | nineteen thirty-nine to nineteen forty-five
1984's | nineteen eighty-four's
# dates
Jan 5, 2024 | January fifth, twenty twenty-four
January 5 | January fifth
Dec. 25th | December twenty-fifth
5 January 2024 | the fifth of January twenty twenty-four
the 5th of May | the fifth of May
March 2021 | March twenty twenty-one
1/5/2024 | January fifth, twenty twenty-four
12/25/99 | December twenty-fifth, nineteen ninety-nine
25/12/2023 | December twenty-fifth, twenty twenty-three
2024-01-05 | January fifth, twenty twenty-four
2024-01-05T10:30:00Z | January fifth, twenty twenty-four, ten thirty
5.1.2024 | January fifth, twenty twenty-four
Mon. Jan. 8 | Monday January eighth
Tues., May 3 | Tuesday, May third
July 4-6 | July fourth to sixth
in Sept. and Oct. | in September and October.
on 3/14 | on March fourteenth
Mon-Fri | Monday to Friday
ca. 1850 | circa eighteen fifty
2024/03/05 | March fifth, twenty twenty-four
5-Mar-24 | March fifth, twenty twenty-four
exp. 12/26 | expires December twenty twenty-six
since 5/2019 | since May twenty nineteen
Tue 6/11 at noon | Tuesday June eleventh at noon
Q1'24 | Q one twenty twenty-four
# times
1:59:40.2 | one fifty-nine forty point two
4:21.07 | four twenty-one point zero seven
14h05 | fourteen oh five
0600 hrs | zero six hundred hours
2000 hours of work | two thousand hours of work
open 8.00-17.30 | open eight to seventeen thirty
8 AM-5 PM | eight AM to five PM
3:30 pm | three thirty PM
3pm | three PM
9 a.m. sharp | nine AM sharp
At 5 p.m. | At five PM.
7:05 | seven oh five
15:45 | fifteen forty-five
12:00 | twelve o'clock
13:00 | thirteen hundred
noon | noon
9am-5pm | nine AM to five PM
10:00-11:30 | ten o'clock to eleven thirty
9-to-5 | nine to five
John 3:16 | John three sixteen
10:30:15 | ten thirty fifteen
# money
$5 | five dollars
$1 | one dollar
$5.20 | five dollars and twenty cents
$1.01 | one dollar and one cent
$0.99 | ninety-nine cents
$5.00 | five dollars
$1,234.56 | one thousand two hundred thirty-four dollars and fifty-six cents
-$5 | minus five dollars
£3m | three million pounds
€1,000 | one thousand euros
$2.5 billion | two point five billion dollars
$1bn | one billion dollars
$20k | twenty thousand dollars
50¢ | fifty cents
US$5 | five US dollars
a $5 bill | a five dollar bill
£5-£10 | five to ten pounds
£5-10 | five to ten pounds
$1.5-2 million | one point five to two million dollars
USD 50 | fifty US dollars
50 EUR | fifty euros
100 € | one hundred euros
¥500 | five hundred yen
₹100 | one hundred rupees
$10/month | ten dollars per month
£1.01 | one pound and one penny
€3,50 | three euros and fifty cents
$15/hr | fifteen dollars per hour
₹1,50,000 | one hundred fifty thousand rupees
Rs. 2,75,000 | two hundred seventy-five thousand rupees
INR 1,00,000 | one hundred thousand rupees
€1.299,00 | one thousand two hundred ninety-nine euros
1.299,50 € | one thousand two hundred ninety-nine euros and fifty cents
1.299 € | one thousand two hundred ninety-nine euros
1.299 €/l | one point two nine nine euros per liter
R$ 1.234,56 | one thousand two hundred thirty-four reais and fifty-six centavos
CHF 1'200.50 | one thousand two hundred Swiss francs and fifty centimes
3,20 € | three euros and twenty cents
500 k€ | five hundred thousand euros
$5 m. | five million dollars.
50 kr. | fifty kronor.
250 SEK | two hundred fifty Swedish kronor
4 500 zł | four thousand five hundred zlotys
100円 | one hundred yen
# measures
273.15 K | two hundred seventy-three point one five kelvin
300K | three hundred thousand
300 K users | three hundred thousand users
a 10 K run | a ten K run
25℃ | twenty-five degrees Celsius
40°26'46"N | forty degrees twenty-six minutes forty-six seconds north
1,200 sq. ft. of space | one thousand two hundred square feet of space
15 cu. ft. | fifteen cubic feet.
2 qts. of milk | two quarts of milk
2 pts. of milk | two pints of milk
20 psi | twenty P S I
5 kΩ | five kilo ohms
mg/kg/day | mg slash kg slash day
15 mg/kg/day | fifteen milligrams per kilogram per day
500mg/5mL | five hundred milligrams per five milliliters
3x/day | three times a day
120/80 mmHg | one hundred twenty over eighty millimeters of mercury
0.5 mol/L | zero point five moles per liter
7/8" pipe | seven eighths inch pipe
2m30s | two minutes thirty seconds
12st 4lb | twelve stone four pounds
5 km | five kilometers
1 km | one kilometer
10kg | ten kilograms
100m | one hundred meters
20°C | twenty degrees Celsius
-5°F | minus five degrees Fahrenheit
98.6 °F | ninety-eight point six degrees Fahrenheit
a 45° angle | a forty-five degree angle
20-25°C | twenty to twenty-five degrees Celsius
60mph | sixty miles per hour
100 km/h | one hundred kilometers per hour
9.8 m/s² | nine point eight meters per second squared
3.5GHz | three point five gigahertz
16GB | sixteen gigabytes
10 Mbps | ten megabits per second
3000 rpm | three thousand RPM
5'11" | five foot eleven
6'2 | six foot two
6 ft. tall | six feet tall
5 ft 10 in | five foot ten
12" pizza | twelve inch pizza
100% | one hundred percent
5-6% | five to six percent
0.5% | zero point five percent
5 sq ft | five square feet
3 m² | three square meters
10 lbs. | ten pounds.
7 oz of gold | seven ounces of gold
a 10-km run | a ten-kilometer run
220V | two hundred twenty volts
24h | twenty-four hours
100ms | one hundred milliseconds
5 min | five minutes
1.6k | one point six thousand
2.5M views | two point five million views
3x faster | three times faster
1920x1080 | nineteen twenty by ten eighty
4x4 | four by four
km/h | kilometers per hour
3/4 tsp salt | three quarters teaspoon salt
1h 30m | one hour thirty minutes
269 sq. ft. | two hundred sixty-nine square feet.
# fractions, ratios, ranges, scores
1/2 | one half
3/4 | three quarters
2/3 | two thirds
½ cup | one half cup
2½ | two and a half
1 1/2 cups | one and a half cups
8/10 | eight out of ten
10-15 | ten to fifteen
pp. 3-5 | pages three to five
won 3-2 | won three to two
16:9 | sixteen to nine
5-year-old | five-year-old
24/7 | twenty-four seven
50/50 | fifty-fifty
9/11 | nine eleven
# telephones and long codes
1-800-FLOWERS | one, eight hundred, flowers
555-CASH | five five five, cash
Text HELP to 55555 | Text HELP to five five five five five
555-1234 | five five five, one two three four
(555) 123-4567 | five five five, one two three, four five six seven
1-800-555-1234 | one, eight hundred, five five five, one two three four
+44 20 7946 0958 | plus four four, two zero, seven nine four six, zero nine five eight
(212) 555-0187 x12 | two one two, five five five, zero one eight seven, extension twelve
212.555.0187 | two one two, five five five, zero one eight seven
ext. 12 | extension twelve
Call 911 now | Call nine one one now
1234 5678 9012 3456 | one two three four, five six seven eight, nine zero one two, three four five six
Beverly Hills, CA 90210 | Beverly Hills, California nine zero two one zero
Room 101 | Room one oh one
Route 66 | Route sixty-six
# web and files
example.com | example dot com
https://example.com/docs?id=5 | example dot com slash docs question mark ID equals five
www.example.co.uk. | W W W dot example dot co dot UK.
a.b@c.io | A dot B at C dot IO
john.smith@example.com | john dot smith at example dot com
localhost:8080 | localhost colon eighty eighty
192.168.1.1 | one ninety-two dot one sixty-eight dot one dot one
report.pdf | report dot PDF
/usr/local/bin | slash usr slash local slash bin
src/main.py | src slash main dot PY
C:\\Users\\bob | C colon backslash Users backslash bob
Node.js | Node dot JS
?query=cats | question mark query equals cats
@handle | at handle
#hashtag | hashtag hashtag
#1 | number one
#100Days | hashtag one hundred Days
foo_bar | foo bar
# versions
v2.0.1 | version two point zero point one
Python 3.11 | Python three point eleven
Ubuntu 24.04 | Ubuntu twenty-four point oh four
version 2.0 | version two point zero
# names of letters and digits
COVID-19 | COVID nineteen
F-16 | F sixteen
GPT-4 | GPT four
B2B | B to B
MP3 | M P three
MP3s | M P threes
H2O | H two O
CO2 | C O two
4K | four K
5G | five G
3D | three D
1080p | ten eighty P
x86_64 | X eighty-six sixty-four
C++ | C plus plus
C# | C sharp
401(k) | four oh one K
0xFF | hex F F
Boeing 747 | Boeing seven forty-seven
AT&T | A T and T
RFC 2616 | RFC twenty-six sixteen
H.264 | H two sixty-four
R2-D2 | R two-D two
# sums and signs
2+2=4 | two plus two equals four
5 - 3 = 2 | five minus three equals two
3 × 4 | three times four
5*3 | five times three
a*b and f = m * k | a times b and f equals m times k
f(x)*g(x) | f(x) times g(x)
10 ÷ 2 | ten divided by two
5 < 6 | five less than six
x >= 5 | x greater than or equal to five
x ≥ 5 | x greater than or equal to five
±5 | plus or minus five
R&D | R and D
§5 | section five
© 2024 | copyright twenty twenty-four
A → B | A to B
w/ milk | with milk
w/o sugar | without sugar
and/or | and or
he/she | he or she
TCP/IP | TCP IP
client/server | client slash server
&c. | et cetera
# chemistry
NaCl and NaOH | N ᴀ C L and N ᴀ O H
SO4 2- | S O four two minus
Ca2+ and Na+ | C ᴀ two plus and N ᴀ plus
Fe³⁺ | F E three plus
¹⁴C | carbon fourteen
2H₂ | two H two
a grade of B+ or A+ | a grade of B plus or A plus
the ΔG of it | the delta G of it
# abbreviations
Dr. Smith | Doctor Smith
Mr. Jones vs. Mrs. Brown | Mister Jones versus Missus Brown
Prof. Lee | Professor Lee
St. Mary's on Elm St. | Saint Mary's on Elm Street.
Rodeo Dr. | Rodeo Drive.
5th Ave. and Main Rd. | fifth Avenue and Main Road.
e.g. this, i.e. that | for example this, that is that
cats, dogs, etc. | cats, dogs, et cetera.
No. 5 | Number five
approx. 10 | approximately ten
Acme Inc. | Acme Incorporated.
the Dept. of Foo | the Department of Foo
vol. 2, ch. 3, fig. 4 | volume two, chapter three, figure four
Sen. Warren and Gen. Lee | Senator Warren and General Lee
Martin Luther King Jr. | Martin Luther King Junior.
Portland, OR 97201 | Portland, Oregon nine seven two zero one
He lives in Austin, TX. | He lives in Austin, Texas.
# law, bible, sports, chats, networks
Roe v. Wade | Roe versus Wade
John Roe, Esq., signed | John Roe, Esquire, signed
eq. (3) | equation (three)
§§ 3-5 | sections three to five
1 Cor. 13:4-8 | first Corinthians thirteen four to eight
Gen. 1:1-3 | Genesis one one to three
Psalm 23:4 | Psalm twenty-three four
49ers and 76ers | forty-niners and seventy-sixers
the 4x100m relay | the four by one hundred meters relay
156/3 at lunch | one hundred fifty-six for three at lunch
3/4 time | three four time
N. Clark St. | North Clark Street.
Penn Ave. NW | Penn Avenue Northwest
Pt. Reyes | Point Reyes
Man Utd won | Man United won
idk, ask him | I don't know, ask him
Thx for that | Thanks for that
see u 2moro | see you tomorrow
let u be the speed | let u be the speed
OMG and IMO | OMG and IMO
IEEE 802.11ax | I triple E eight oh two dot eleven ᴀ X
Node 20.x | Node twenty point X
fe80::1 | F E eighty colon colon one
a && b | a and b
A380 | ᴀ three eighty
2) pears a) red | two) pears ᴀ) red
# amounts in front of nouns, keys, codes, spans of time
TL;DR: it works | T L D R: it works
wait 10s | wait ten seconds
in 10s | in ten seconds
the 10s | the tens
the 5s and 6s | the fives and sixes
up 5% YoY | up five percent year over year
QoQ growth | quarter over quarter growth
Press Ctrl+C | Press control C
Ctrl+Alt+Del | control alt delete
Cmd+Shift+P | command shift P
Ctrl-C | control C
Alt+F4 | alt F four
press Esc | press escape
4 in. wide | four inches wide
a 6' fence | a six foot fence
6' tall | six feet tall
65" TV | sixty-five inch TV
a 65" TV | a sixty-five inch TV
a 512 GB drive | a five hundred twelve gigabyte drive
512 GB of RAM | five hundred twelve gigabytes of RAM
the 5 km run | the five kilometer run
a 20 kg bag | a twenty kilogram bag
my 20 kg is | my twenty kilograms is
a $2.00 book | a two dollar book
the $8M budget | the eight million dollar budget
the $5 is gone | the five dollars is gone
Monday - Friday | Monday to Friday
Monday-Friday | Monday to Friday
Jan-Mar | January to March
Jan - Mar 2024 | January to March twenty twenty-four
June-August | June to August
HTTP 404 | HTTP four oh four
error 404 | error four oh four
status 500 | status five hundred
status code 503 | status code five oh three
room 101 | room one oh one
HTTP 200 | HTTP two hundred
2010 items | two thousand ten items
in 2010 items were sold | in twenty ten items were sold
$1,450-$1,600 | one thousand four hundred fifty to one thousand six hundred dollars
mom | mom
a 10% discount | a ten percent discount
timeout of 30s | timeout of thirty seconds
in his 30s | in his thirties
took 20s to load | took twenty seconds to load
winds 10 to 15 mph | winds ten to fifteen miles per hour
a 100 m sprint | a one hundred meter sprint
the 3 lbs of meat | the three pounds of meat
Status: 404 | Status: four oh four
The 5 km felt long | The five kilometers felt long
he said 'I am 6' now | he said 'I am six' now
a 2 TB SSD | a two terabyte SSD
the 5 kg are heavy | the five kilograms are heavy
an 8 GB limit | an eight gigabyte limit
a 5 km/h limit | a five kilometer per hour limit
# Roman numerals
sections I, II and III | sections one, two and three
Parts II-IV | Parts two to four
steps (i), (ii) and (iii) | steps (one), (two) and (three)
from MCMXCIX | from nineteen ninety-nine
Henry VIII did not | Henry the eighth did not
the IV drip and vitamin C | the IV drip and vitamin C
you and I, Mike | you and I, Mike
# identifiers and versions
ISBN 978-3-16-148410-0 | ISBN nine seven eight, three, one six, one four eight four one zero, zero
2.0.1-beta.3 | two point zero point one beta three
v1.2.0-rc1 | version one point two point zero R C one
Qwen2.5 | Qwen two point five
a gpt-3.5 model | a gpt three point five model
# degrees, units and superscripts
a Ph.D. student | a PhD student
5.2 L/100km | five point two liters per hundred kilometers
L/100km | liters per hundred kilometers
in m² | in square meters
7,850 kg/m³ | seven thousand eight hundred fifty kilograms per cubic meter
10⁻³ m | ten to the minus third meters
CO₂ and H₂SO₄ | C O two and H two S O four
user.save() | user dot save()
f("x").mean() | f("x") dot mean()
a 2-3x speed-up | a two to three times speed-up
react@18.2 | react at eighteen point two
VS Code vs Vim | VS Code versus Vim
the item(s) | the items
echo $HOME | echo dollar HOME
a) the oil | ᴀ) the oil
Henry VIII | Henry the eighth
Henry VIII's wives | Henry the eighth's wives
Elizabeth I was | Elizabeth the first was
Louis XIV | Louis the fourteenth
World War II | World War two
WWII | World War Two
Chapter IV | Chapter four
Super Bowl LVIII | Super Bowl fifty-eight
John Smith III | John Smith the third
the XXI century | the twenty-first century
# what a newcomer heard wrong
Read 1:1-3 and 1 Cor. 13 | Read one one to three and first Corinthians thirteen
open 9:30-11 | open nine thirty to eleven
a walk at 7.15 am | a walk at seven fifteen AM
Re: your letter | ree: your letter
on Main St. in Boston | on Main Street in Boston
near St. Mary's St. in St. Paul | near Saint Mary's Street in Saint Paul
raised $5 m and | raised five million dollars and
Copyright © 2026 | Copyright twenty twenty-six
J. K. Rowling met George W. Bush | J K Rowling met George W Bush
by A. Writer | by A Writer
took plan B. Bob left | took plan B. Bob left
350 Fifth Ave, near it | three fifty Fifth Avenue, near it
Pennsylvania Ave NW, and Ave Maria | Pennsylvania Avenue Northwest, and Ave Maria
a 13 A fuse at gate 13 A | a thirteen amp fuse at gate thirteen A
the IEEE 802.11ax. | the I triple E eight oh two dot eleven ᴀ X.
in Mar. '23 | in March twenty twenty-three
since Dec '98 | since December nineteen ninety-eight
from 8/5-8/9 | from August fifth to August ninth
1/2-3/4 cup | one half to three quarters cup
at 7:05a, arr. ORD 1:22p | at seven oh five AM, arrives ORD one twenty-two PM
Sat. & Sun. off | Saturday and Sunday off
in Rm 4B off Hwy 101 | in Room four B off Highway one oh one
2 tbsp. sugar, a tbsp. of oil | two tablespoons sugar, a tablespoon of oil
5 km N of it, SW of the city | five kilometers north of it, southwest of the city
a 4* hotel, 104* off | a four star hotel, one hundred four not out off
x**2 and 2**10 | x squared and two to the tenth
run npm i -D ts and source .env | run npm i dash D ts and source dot env
3 × 10^8 m/s | three times ten to the eighth meters per second
the 747-8 and file 2024-0117 | the seven forty-seven eight and file twenty twenty-four zero one one seven
2%/month | two percent per month
a 12' x 14' room | a twelve foot by fourteen foot room
IBAN GB29 NWBK 6016 1331 | IBAN G B two nine, N W B K, six zero one six, one three three one
on the 2nd fl. of it | on the second floor of it
SpO2 and HbA1c | S P O two and H B A one C
I (31M) paid | I (thirty-one M) paid
a lot of 60 x 120 ft | a lot of sixty by one hundred twenty feet
12 at $4 ea. now | twelve at four dollars each now
jeans, 32W x 34L | jeans, thirty-two W by thirty-four L
"""

ROWS = [tuple(row.split(" | ")) for row in TABLE.replace("\\\\", "\\").splitlines() if " | " in row]


@pytest.mark.parametrize(("written", "spoken"), ROWS)
def test_american_english(written: str, spoken: str) -> None:
    assert normalized(written) == spoken


def test_a_uuid_is_spelled_sign_by_sign() -> None:
    assert normalized("5e0e8400-e29b-41d4-a716-446655440000") == (
        "five E zero E eight four zero zero, E two nine B, four one D four, \u1d00 seven one six, "
        "four four six six five five four four zero zero zero zero"
    )


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("105", "one hundred and five"),
        ("1,005", "one thousand and five"),
        ("2,345,678", "two million three hundred and forty-five thousand six hundred and seventy-eight"),
        ("in 2005", "in two thousand and five"),
        ("1/5/2024", "the first of May, twenty twenty-four"),
        ("2024-01-05", "the fifth of January, twenty twenty-four"),
        ("5 January", "the fifth of January"),
        ("January 5", "January the fifth"),
        ("5 km", "five kilometres"),
        ("50p", "fifty pence"),
        ("£5.50", "five pounds and fifty pence"),
    ],
)
def test_british_english_differs(written: str, spoken: str) -> None:
    assert normalized(written, "en-gb") == spoken


@pytest.mark.parametrize(
    ("code", "written", "spoken"),
    [
        ("en-in", "12,34,567", "twelve lakh thirty-four thousand five hundred and sixty-seven"),
        ("en-in", "₹1,50,000 crore", "one lakh fifty thousand crore rupees"),
        ("en-in", "2500000", "twenty-five lakh"),
        ("en-in", "2,500,000", "two million five hundred thousand"),
        ("en-in", "₹85 L, ₹40 Cr.", "eighty-five lakh rupees, forty crore rupees."),
        ("en-in", "05/03/2024", "the fifth of March, twenty twenty-four"),
        ("en-in", "Smt. Rao, opp. Mall, Pune 411001", "Shrimati Rao, opposite Mall, Pune four one one zero zero one"),
        ("en-au", "Bendigo, Vic.", "Bendigo, Victoria."),
        ("en-au", "Vic Reeves", "Vic Reeves"),
        ("en-au", "Newtown NSW 2042", "Newtown NSW two zero four two"),
        ("en-ie", "Co. Cork", "County Cork"),
        ("en-us", "Sony Co. of", "Sony Company of"),
    ],
)
def test_regions_have_numbers_dates_and_abbreviations_of_their_own(code: str, written: str, spoken: str) -> None:
    assert normalized(written, code) == spoken


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The total is 519 562 now.", "'519 562' is read as one number"),
        ("It weighs 3,5 kg.", "'3,5' is read with a decimal comma"),
        ("On 05/03/2024 he left.", "'05/03/2024' is read with the month first"),
        ("It is 300 K here.", "'300 K' is read in kelvin"),
    ],
)
def test_what_is_a_guess_is_named(text: str, named: str) -> None:
    assert any(guess.startswith(named) for guess in guesses(text, "en-us"))


@pytest.mark.parametrize("text", ["On 25/03/2024 and 2024-03-05.", "12,345 and 12.5", "He has 300K.", "Plain words."])
def test_what_has_one_reading_is_not_named(text: str) -> None:
    assert not any(guesses(text, "en-us"))


@pytest.mark.parametrize(
    "unit",
    [
        "1,",
        "1",
        "a.",
        "1-",
        "$1",
        "1 ",
        "/a",
        "a@",
        "I",
        "1/",
        "1:",
        "'1",
        "x^",
        "a1",
        "Jan 1 ",
        ".",
        "#a",
        "http://",
        "1 000 ",
        "1.000",
        "1'000",
        "1,00",
        "0,",
        "Na+",
        "1°2'",
        "1-800-A",
        "1/2/",
        "1K ",
        "u ",
        "idk ",
        "1 Cor. 1:",
        "::",
        "N. A ",
        "v. ",
        "€1",
    ],
)
def test_adversarial_sentences_take_linear_time(unit: str) -> None:
    assert normalized(unit * (5_000 // len(unit)))
