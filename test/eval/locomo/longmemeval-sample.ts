/** A LongMemEval question in its public form, with a history made up for it. */
export interface LongMemEvalInstance {
  readonly question_id: string;
  readonly question_type: string;
  readonly question: string;
  readonly answer: string | number;
  readonly question_date: string;
  readonly haystack_session_ids: readonly string[];
  readonly haystack_dates: readonly string[];
  readonly haystack_sessions: readonly (readonly {
    readonly role: string;
    readonly content: string;
    readonly has_answer?: boolean;
  }[])[];
  readonly answer_session_ids: readonly string[];
}

type Session = readonly [said: string, answered: string, hasAnswer?: "user" | "assistant"];

const FILLER: readonly Session[] = [
  ["How do I get wine out of a carpet?", "Blot it, then use cold water with a little vinegar."],
  ["Name three rivers in France.", "The Loire, the Rhône and the Garonne."],
];

function instance(
  [question_id, question_type]: readonly [id: string, type: string],
  [question, answer]: readonly [string, string | number],
  sessions: readonly Session[],
): LongMemEvalInstance {
  const all = [FILLER[0] as Session, ...sessions, FILLER[1] as Session];
  const ids = all.map(([, , hasAnswer], at) => `${hasAnswer === undefined ? "filler" : "answer"}_${question_id}_${at}`);
  return {
    question_id,
    question_type,
    question,
    answer,
    question_date: "2023/05/30 (Tue) 23:40",
    haystack_session_ids: ids,
    haystack_dates: all.map((_, at) => `2023/05/${String(10 + at)} (Wed) 02:21`),
    haystack_sessions: all.map(([said, answered, hasAnswer]) => [
      { role: "user", content: said, ...(hasAnswer === "user" ? { has_answer: true } : {}) },
      { role: "assistant", content: answered, ...(hasAnswer === "assistant" ? { has_answer: true } : {}) },
    ]),
    answer_session_ids: ids.filter((id) => id.startsWith("answer")),
  };
}

/** Every type of question, and one that cannot be answered; evidence in one session or in two. */
export const LONGMEMEVAL_SAMPLE: readonly LongMemEvalInstance[] = [
  instance(
    ["e47becba", "single-session-user"],
    ["What degree did I graduate with?", "Business Administration"],
    [["I graduated with a degree in Business Administration.", "Congratulations!", "user"]],
  ),
  instance(
    ["7161e7e2", "single-session-assistant"],
    ["Which tea did you recommend for the evening?", "Rooibos"],
    [["What tea has no caffeine?", "For the evening I recommend rooibos.", "assistant"]],
  ),
  instance(
    ["8a2466db", "single-session-preference"],
    ["Can you recommend something for my camera?", "The user would prefer accessories for a Sony camera."],
    [["I only use Sony gear for my photos.", "Sony has a wide range.", "user"]],
  ),
  instance(
    ["gpt4_59c863d7", "multi-session"],
    ["How many model kits have I worked on?", 2],
    [
      ["I finished a Spitfire model kit.", "Well done.", "user"],
      ["Now I am on a model kit of a Tiger tank.", "Good luck with it.", "user"],
    ],
  ),
  instance(
    ["gpt4_2655b836", "temporal-reasoning"],
    ["How many days ago did I service my car?", "19 days"],
    [["I had my car serviced today.", "Good to hear.", "user"]],
  ),
  instance(
    ["6a1eabeb", "knowledge-update"],
    ["What is my best time over five kilometres?", "25:50"],
    [
      ["My best time over five kilometres is 27:12.", "Nice.", "user"],
      ["I ran five kilometres in 25:50, my new best time.", "Great progress!", "user"],
    ],
  ),
  instance(
    ["a96c20ee_abs", "multi-session"],
    ["What is the name of my hamster?", "You did not mention a hamster."],
    [["My cat is called Luna.", "A lovely name.", "user"]],
  ),
];
