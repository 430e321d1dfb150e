// SPDX-License-Identifier: Apache-2.0
#include "examples/data/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "frontend/io/file.h"

namespace lockstep::examples {
namespace {

constexpr auto kGiven = std::to_array<const char*>(
    {"aaron",     "abigail",  "adam",      "adele",       "adrian",    "agnes",     "aidan",     "alan",      "albert",   "alexander",
     "alfred",    "alice",    "alison",    "amanda",      "amber",     "amelia",    "amy",       "andrea",    "andrew",   "angela",
     "anita",     "anna",     "anthony",   "antonia",     "april",     "arthur",    "ashley",    "astrid",    "audrey",   "august",
     "austin",    "barbara",  "beatrice",  "benjamin",    "bernard",   "bertha",    "bethany",   "blake",     "bonnie",   "boris",
     "bradley",   "brandon",  "brenda",    "brian",       "bridget",   "bruce",     "bruno",     "caleb",     "cameron",  "camilla",
     "carl",      "carla",    "carmen",    "carol",       "caroline",  "carter",    "catherine", "cecilia",   "celia",    "charles",
     "charlotte", "chloe",    "christina", "christopher", "clara",     "clarence",  "claudia",   "clement",   "colin",    "conrad",
     "cora",      "cornelia", "craig",     "crystal",     "curtis",    "cynthia",   "daisy",     "damian",    "daniel",   "danielle",
     "daphne",    "darren",   "david",     "deborah",     "declan",    "delia",     "dennis",    "derek",     "diana",    "dominic",
     "donald",    "dora",     "doris",     "dorothy",     "douglas",   "duncan",    "dylan",     "edgar",     "edith",    "edmund",
     "edward",    "edwin",    "eileen",    "elaine",      "eleanor",   "elias",     "elisa",     "elizabeth", "ella",     "ellen",
     "elliot",    "elsa",     "emily",     "emma",        "eric",      "erica",     "ernest",    "esther",    "ethan",    "eugene",
     "eva",       "evelyn",   "fabian",    "faith",       "felicia",   "felix",     "ferdinand", "fiona",     "flora",    "florence",
     "frances",   "francis",  "frank",     "frederick",   "gabriel",   "gareth",    "gavin",     "gemma",     "geoffrey", "george",
     "georgia",   "gerald",   "gerda",     "gilbert",     "gina",      "gloria",    "gordon",    "grace",     "graham",   "grant",
     "gregory",   "greta",    "guy",       "gwen",        "hannah",    "harold",    "harriet",   "harry",     "harvey",   "hazel",
     "heather",   "hector",   "helen",     "helena",      "henry",     "herbert",   "herman",    "hilary",    "hilda",    "holly",
     "howard",    "hubert",   "hugh",      "hugo",        "humphrey",  "ian",       "ida",       "imogen",    "ines",     "ingrid",
     "irene",     "iris",     "isaac",     "isabel",      "isabella",  "ivan",      "ivy",       "jack",      "jacob",    "james",
     "jane",      "janet",    "jasmine",   "jason",       "jasper",    "jean",      "jeffrey",   "jenna",     "jennifer", "jeremy",
     "jerome",    "jessica",  "jill",      "joan",        "joanna",    "joel",      "johanna",   "john",      "jonathan", "joseph",
     "joshua",    "joyce",    "judith",    "julia",       "julian",    "juliet",    "justin",    "karen",     "karl",     "kate",
     "katherine", "keith",    "kelly",     "kenneth",     "kevin",     "kirsten",   "kurt",      "lara",      "laura",    "laurence",
     "lawrence",  "leah",     "leo",       "leon",        "leonard",   "leonora",   "leslie",    "lewis",     "liam",     "lilian",
     "lily",      "linda",    "lionel",    "lisa",        "logan",     "lorraine",  "louis",     "louisa",    "lucas",    "lucia",
     "lucy",      "luke",     "lydia",     "mabel",       "madeleine", "malcolm",   "marcus",    "margaret",  "maria",    "marian",
     "marina",    "marion",   "mark",      "martha",      "martin",    "mary",      "matilda",   "matthew",   "maurice",  "max",
     "maya",      "megan",    "melanie",   "melissa",     "mercy",     "michael",   "michelle",  "mildred",   "miles",    "miranda",
     "miriam",    "molly",    "monica",    "morgan",      "nadia",     "nancy",     "naomi",     "natalie",   "nathan",   "neil",
     "nell",      "nicholas", "nicole",    "nigel",       "nina",      "noah",      "nora",      "norman",    "olga",     "oliver",
     "olivia",    "oscar",    "oswald",    "otto",        "owen",      "pamela",    "patricia",  "patrick",   "paul",     "paula",
     "pauline",   "peggy",    "penelope",  "percy",       "peter",     "philip",    "phoebe",    "phyllis",   "pierre",   "polly",
     "rachel",    "ralph",    "raymond",   "rebecca",     "regina",    "reginald",  "rhoda",     "richard",   "rita",     "robert",
     "robin",     "roger",    "roland",    "ronald",      "rosa",      "rosalind",  "rose",      "rosemary",  "roy",      "rudolf",
     "rupert",    "ruth",     "ryan",      "sabrina",     "samantha",  "samuel",    "sandra",    "sarah",     "scott",    "sean",
     "sebastian", "selma",    "sharon",    "sheila",      "sibyl",     "sidney",    "silas",     "silvia",    "simon",    "sofia",
     "solomon",   "sonia",    "sophie",    "stanley",     "stella",    "stephanie", "stephen",   "stuart",    "susan",    "sven",
     "tabitha",   "tamara",   "tanya",     "teresa",      "terence",   "thelma",    "theodore",  "thomas",    "tiffany",  "timothy",
     "tobias",    "trevor",   "tristan",   "ulrich",      "ursula",    "valerie",   "vanessa",   "vera",      "verena",   "veronica",
     "victor",    "victoria", "vincent",   "viola",       "violet",    "virginia",  "vivian",    "walter",    "wanda",    "warren",
     "wendy",     "werner",   "wilfred",   "william",     "winifred",  "xavier",    "yolanda",   "yvonne",    "zachary",  "zara",
     "zelda",     "zoe"});

constexpr auto kCreatures = std::to_array<const char*>(
    {"ashwing",  "bogbeetle", "cindermaw", "dewdrake", "emberpaw", "fernhorn", "gloomoth", "hailfin",  "inklume",  "jadeclaw",
     "kelpup",   "lavalynx",  "mistral",   "nightnip", "orbeetle", "pebblit",  "quillow",  "rootbear", "sandskip", "thornix",
     "umbrat",   "vineling",  "wispark",   "xenopod",  "yarrowl",  "zapphin",  "bramblon", "coralisk", "driftail", "echomite",
     "frostuft", "glimmoss",  "hollowig",  "ironewt",  "lumipuff", "marshock", "nimbusk",  "opalant",  "prismoth", "rustoad"});

}  // namespace

std::span<const char* const> givenNames() { return kGiven; }
std::span<const char* const> creatureNames() { return kCreatures; }

std::vector<std::string> loadNames(const std::string& path, std::span<const char* const> ours, size_t shortest, size_t longest) {
  if (path.empty()) return {ours.begin(), ours.end()};
  std::istringstream lines(io::readTextFile(path).orThrow());
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    std::ranges::transform(line, line.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const bool plain = std::ranges::all_of(line, [](char c) { return c >= 'a' && c <= 'z'; });
    if (plain && line.size() >= shortest && line.size() <= longest) names.push_back(line);
  }
  if (!names.empty()) return names;
  throw Error(fail("data.names", fmt::format("'{}' has no name of {} to {} letters", path, shortest, longest), {},
                   "--data names a file with one name per line, in letters from a to z")
                  .diagnostics);
}

NameBatch nameBatch(std::span<const std::string> names, size_t length, int32_t first_letter, int32_t edge, int32_t padding) {
  NameBatch batch;
  double weights = 0;
  for (const std::string& name : names) {
    std::vector<int32_t> tokens{edge};
    for (const char letter : name) tokens.push_back(first_letter + letter - 'a');
    tokens.push_back(edge);
    tokens.resize(length + 1, padding);
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end() - 1);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    const size_t known = std::min(name.size() + 1, length);
    for (size_t i = 0; i < length; ++i) batch.mask.push_back(i < known ? 1.0f : 0.0f);
    weights += static_cast<double>(known);
  }
  for (float& weight : batch.mask) weight = static_cast<float>(weight / weights);
  return batch;
}

std::string nameOf(std::span<const int32_t> tokens, int32_t first_letter) {
  std::string name;
  for (const int32_t token : tokens) {
    if (token < first_letter || token >= first_letter + 26) break;
    name += static_cast<char>('a' + token - first_letter);
  }
  return name;
}

}  // namespace lockstep::examples
