"use strict";
// Both norms of the sliders' numbers: the arithmetic of normbench/walkthrough.py, operation by operation.
(() => {
  const given = JSON.parse(document.getElementById("given").textContent);
  const controls = document.querySelector(".controls");
  const sliders = Array.from(controls.querySelectorAll("input"));
  const norms = ["layernorm", "rmsnorm"];
  const copy = (state) => ({ ...state, values: [...state.values], gain: [...state.gain], bias: [...state.bias] });
  let state = copy(given);

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const mean = (values) => {
    const first = sum(values) / values.length;
    return first + sum(values.map((value) => value - first)) / values.length;
  };
  const times = (values, others) => values.map((value, index) => value * others[index]);
  const plus = (values, others) => values.map((value, index) => value + others[index]);

  const stepsOf = (norm, values) => {
    const centre = norm === "layernorm" ? mean(values) : null;
    const centred = centre === null ? null : values.map((value) => value - centre);
    const measured = centred ?? values;
    const squares = times(measured, measured);
    const meanOfSquares = mean(squares);
    const root = Math.sqrt(meanOfSquares + state.eps);
    const divided = measured.map((value) => value / root);
    const gained = times(divided, state.gain);
    return {
      values,
      mean: centre,
      centred,
      squares,
      mean_of_squares: meanOfSquares,
      plus_eps: meanOfSquares + state.eps,
      root,
      divided,
      times_gain: gained,
      plus_bias: centred && plus(gained, state.bias),
    };
  };
  const outputOf = (norm, values) => {
    const steps = stepsOf(norm, values);
    return steps.plus_bias ?? steps.times_gain;
  };
  const largestDifference = (values, others) =>
    Math.max(...values.map((value, index) => Math.abs(others[index] - value)));

  const walk = (norm) => {
    const steps = stepsOf(norm, state.values);
    const output = steps.plus_bias ?? steps.times_gain;
    const shifted = outputOf(norm, state.values.map((value) => value + state.shift));
    const scaled = outputOf(norm, state.values.map((value) => value * state.scale));
    const turned = times(steps.divided.map((value) => Math.sign(state.scale) * value), state.gain);
    const invariant = steps.plus_bias ? plus(turned, state.bias) : turned;
    return {
      steps,
      output,
      shifted: { after: shifted, largest_change: largestDifference(output, shifted) },
      scaled: {
        after: scaled,
        largest_change: largestDifference(output, scaled),
        from_invariance: state.scale ? largestDifference(invariant, scaled) : [],
      },
    };
  };

  // Numbers as text: what normbench/units.py makes of them.
  const unlike = (value) => (Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "-inf");
  const padded = (text) => text.replace(/e([+-])(\d)$/, "e$10$2");
  const plain = (value, digits = 6) => {
    if (!Number.isFinite(value)) return unlike(value);
    const whole = Number(value.toExponential(digits - 1).split("e")[1]) + 1;
    const kept = whole <= 6 ? Math.max(digits, whole) : digits;
    const [mantissa, exponent] = value.toExponential(kept - 1).split("e");
    if (Number(mantissa) === 0) return "0";
    if (exponent < -4 || exponent >= kept) return padded(`${Number(mantissa)}e${exponent}`);
    return String(Number(`${mantissa}e${exponent}`));
  };
  const texts = (values) => {
    const largest = Math.max(0, ...values.filter(Number.isFinite).map(Math.abs));
    const isFixed = largest === 0 || (largest >= 1e-3 && largest < 1e7);
    return values.map((value) => {
      if (!Number.isFinite(value)) return unlike(value);
      const text = isFixed || value === 0 ? value.toFixed(6) : padded(value.toExponential(6));
      return Number(text) === 0 ? text.replace("-", "") : text;
    });
  };

  // How wide they are, in digits: a point is half of one, a plus a little more than one.
  const room = (shown) => Math.max(0, ...shown.map((text) => text.length - (text.includes("+") ? 0 : 0.5)));

  // Charts: heights are shares of what they reach, which is the same for both norms of a row.
  const nice = (least) => {
    const power = least.toExponential(6).split("e")[1];
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => Number(`${factor}e${power}`)).find((end) => end >= least);
  };
  const reachOf = (values) => nice(1.1 * Math.max(0, ...values.filter(Number.isFinite).map(Math.abs)) || 1);
  const share = (value, reach) => (Number.isNaN(value) ? 0 : Math.max(-1, Math.min(1, value / reach)));

  const draw = (kind, shown, before, bands = []) => {
    const row = document.querySelector(`[data-row="${kind}"]`);
    const ends = bands.flatMap(({ centre, root }) => [centre - root, centre + root]);
    const reach = reachOf([...shown.flat(), ...before.flat(), ...ends]);
    row.querySelectorAll(".end.top").forEach((end) => (end.textContent = plain(reach)));
    row.querySelectorAll(".end.bottom").forEach((end) => (end.textContent = `-${plain(reach)}`));
    row.querySelectorAll("figure").forEach((figure, index) => {
      figure.querySelectorAll(".slot").forEach((slot, place) => {
        const value = shown[index][place];
        slot.style.setProperty("--v", share(value, reach));
        slot.style.setProperty("--b", share(before[index][place], reach));
        slot.classList.toggle("down", value < 0);
        slot.querySelector(".tag").textContent = plain(value, 3);
      });
      if (bands.length) {
        const band = figure.querySelector(".band");
        band.style.setProperty("--c", bands[index].centre / reach);
        band.style.setProperty("--s", bands[index].root / reach);
        figure.querySelector(".unit").textContent = plain(bands[index].root, 3);
        const from = figure.querySelector(".from");
        if (from) from.textContent = plain(bands[index].centre, 3);
      }
    });
  };

  const command = () => {
    const one = (name, values) => `--${name} ${values.every((value) => value === values[0]) ? values[0] : values.join(" ")}`;
    const changes = `--shift ${state.shift} --scale ${state.scale} --eps ${state.eps}`;
    return `normbench explain ${state.values.join(" ")} ${changes} ${one("gain", state.gain)} ${one("bias", state.bias)}`;
  };

  const show = () => {
    const walks = Object.fromEntries(norms.map((norm) => [norm, walk(norm)]));
    for (const place of document.querySelectorAll("[data-figures]")) {
      const found = place.dataset.figures.split(".").reduce((part, name) => part[name], walks);
      const shown = texts([found].flat());
      place.style.setProperty("--wide", room(shown));
      place.replaceChildren(
        ...(shown.length ? shown : ["-"]).map((text) => Object.assign(document.createElement("span"), { textContent: text })),
      );
    }
    const both = norms.map((norm) => walks[norm]);
    const outputs = both.map(({ output }) => output);
    const of = {
      shifted: `x ${state.shift < 0 ? "-" : "+"} ${plain(Math.abs(state.shift))}`,
      scaled: `x × ${plain(state.scale)}`,
    };
    draw("input", [state.values, state.values], [state.values, state.values],
      both.map(({ steps }) => ({ centre: steps.mean ?? 0, root: steps.root })));
    draw("output", outputs, outputs);
    for (const [kind, text] of Object.entries(of)) {
      draw(kind, both.map((norm) => norm[kind].after), outputs);
      document.querySelector(`[data-row="${kind}"] h3`).textContent = `y of ${text}`;
      document.querySelectorAll(`[data-of="${kind}"]`).forEach((place) => (place.textContent = text));
    }
    const every = both.flatMap(({ output, shifted, scaled }) => [...output, ...shifted.after, ...scaled.after]);
    document.querySelector("[data-problem]").hidden = every.every(Number.isFinite);
    document.querySelector(".again code").textContent = command();
  };

  const numberOf = (slider) => {
    const position = slider.valueAsNumber;
    if (slider.id !== "eps") return position;
    // As it is shown; the least position is 0.
    return position <= Number(slider.min) ? 0 : Number((10 ** position).toPrecision(3));
  };
  const say = (slider) => {
    const [name, place] = slider.id.split(".");
    const found = Array.isArray(state[name]) ? state[name][place ?? 0] : state[name];
    slider.parentElement.querySelector("output").textContent = plain(found);
    slider.setAttribute("aria-valuetext", plain(found));
  };
  const take = (slider) => {
    const [name, place] = slider.id.split(".");
    if (place !== undefined) state[name][place] = numberOf(slider);
    else state[name] = Array.isArray(state[name]) ? state[name].map(() => numberOf(slider)) : numberOf(slider);
    say(slider);
    show();
  };

  const status = document.querySelector("[role=status]");
  for (const slider of sliders) {
    slider.addEventListener("input", () => take(slider));
    slider.addEventListener("change", () => {
      const outputs = norms.map((norm) => walk(norm).output.map((value) => plain(value, 3)).join(", "));
      status.textContent = `LayerNorm: ${outputs[0]}. RMSNorm: ${outputs[1]}.`;
    });
  }
  controls.querySelector("button").addEventListener("click", () => {
    controls.reset();
    state = copy(given);
    sliders.forEach(say);
    show();
  });

  controls.hidden = false;
  document.querySelector(".again").hidden = false;
  controls.reset();
  show();
})();
