/*
 * The try-it page's made-up sample: small enough to read, with both reasons for misses: other memories for every question, and a conversation
 * that goes on.
 */

export const SAMPLE_MEMORIES = `Ana is vegetarian and does not eat eggs.
Ana is in Lisbon from 3 to 9 May.
Ana's sister Ines lives in the Alfama quarter of Lisbon.
Ana is allergic to walnuts.
Ana prefers trams to taxis.
Ana has a budget of 40 euros a day for food.
Ana likes fado, and places where it is sung live.
Ana gets up at six and goes to bed at ten.
Ines works in a bookshop on Rua Garrett until seven.
Ana went to Jardim das Cerejas in Lisbon last year and liked the buffet.
Ana wants to see the tile museum again.
Ana has a bad knee and avoids long stairs.`;

export const SAMPLE_HISTORY = `system: You plan trips. Be brief.
user: Where should Ana eat tonight in Lisbon?
assistant: Jardim das Cerejas: vegetarian, a buffet, about 12 euros. Ask which salads have walnuts or eggs.
user: Can Ines come along after work, and how do they get there?
assistant: Yes: she is done at seven. Tram 28 stops near both of them. It saves Ana the stairs of Alfama.
user: What could Ana see tomorrow morning?
assistant: The tile museum, right when it opens at ten. The tram leaves her a short walk on the flat.
user: And fado in the evening, but not too late?
assistant: A fado house in Alfama has an early set at half past seven.
user: What should Ana eat there, within her budget?`;
