/** Something that is waited for, and when it is: what a test does in between happens at that moment. */
export class Gate {
  #reach = () => {};
  #open = () => {};
  readonly reached = new Promise<void>((resolve) => {
    this.#reach = resolve;
  });
  readonly #isOpen = new Promise<void>((resolve) => {
    this.#open = resolve;
  });

  /** To be called where one waits. */
  readonly pass = async (): Promise<void> => {
    this.#reach();
    await this.#isOpen;
  };

  open(): void {
    this.#open();
  }
}
