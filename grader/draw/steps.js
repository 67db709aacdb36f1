// Steps through a film: a moving one shows one step at a time, a strip those that have been.
(root => {
  const moving = root.querySelector("[class^=many-devices-film]"), strip = root.querySelector("svg");
  const scenes = moving ? [...moving.children].filter(node => node.tagName === "g") : [];
  const rows = [...strip.querySelectorAll("[data-t]")];
  const word = strip.querySelector("text[data-t]").textContent.split(" ")[0];  // what a step is called
  const last = moving ? scenes.length - 1 : Math.max(...rows.map(row => row.dataset.t));
  let step = moving ? 0 : last, playing = moving && !matchMedia("(prefers-reduced-motion: reduce)").matches;

  const stand = () => scenes.forEach((scene, k) => {
    scene.style.animation = "none";
    scene.style.visibility = k === step ? "visible" : "hidden";
    for (const sent of scene.children) if (sent.tagName === "g") {
      sent.style.animation = "none";
      sent.style.opacity = 1;
      sent.style.transform = "translate(var(--u),var(--v))";
    }
  });
  const move = () => scenes.flatMap(scene => [scene, ...scene.children]).forEach(node => {
    for (const name of ["animation", "visibility", "opacity", "transform"]) node.style[name] = "";
  });
  const show = () => {
    if (playing) move(); else if (moving) stand();
    if (!moving) for (const row of rows) row.style.opacity = row.dataset.t <= step ? "" : ".07";
    said.textContent = playing ? "" : `${word} ${step} of ${last}`;
    back.disabled = !playing && step === 0;
    on.disabled = !playing && step === last && !moving;
    play.textContent = playing ? "❚❚" : "play";
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
  };
  const go = by => {
    step = playing ? 0 : moving ? (step + by + last + 1) % (last + 1) : step + by;
    playing = false;
    show();
  };
  const button = (sign, label, act) => {
    const made = document.createElement("button");
    Object.assign(made, {type: "button", textContent: sign, onclick: act});
    made.setAttribute("aria-label", label);
    made.style.cssText = "font:inherit;color:inherit;background:none;border:1px solid;border-radius:4px;min-width:28px;min-height:24px;cursor:pointer";
    return made;
  };
  const back = button("◀", "One step back", () => go(-1)), on = button("▶", "One step on", () => go(1));
  const play = button("", "Play", () => { playing = !playing; show(); });
  const first = button("|◀", "First step", () => { step = 0; playing = false; show(); });
  const said = document.createElement("output"), bar = document.createElement("div");
  bar.style.cssText = "display:flex;gap:4px;align-items:center;font:12px system-ui,sans-serif";
  bar.append(first, back, on, ...(moving ? [play] : []), said);
  if (moving) {
    strip.remove();
    moving.style.display = "";
  }
  root.append(bar);
  show();
})(document.currentScript.parentElement);
