// Pointing at a block, or choosing a device, lights what the same devices hold in every array of the picture.
(root => {
  const blocks = [...root.querySelectorAll("[data-d]")];
  const holders = block => block.dataset.d.split(" ");
  const drawn = root.dataset.device ?? "";  // the picture is drawn for this device, or for any
  const light = devices => blocks.forEach(block => {
    const asDrawn = devices.join() === drawn;
    const lit = asDrawn || holders(block).some(device => devices.includes(device));
    block.style.opacity = lit ? "" : ".25";
    const framed = lit && !asDrawn && block.tagName === "path";
    block.style.stroke = framed ? "currentColor" : "";
    block.style.strokeWidth = framed ? "2.5" : "";
  });
  const form = document.createElement("form");
  const chosen = () => [new FormData(form).get("device")].filter(Boolean);
  const devices = [...new Set(blocks.flatMap(holders))].sort((a, b) => a - b);
  form.style.cssText = "display:flex;flex-wrap:wrap;gap:0 8px;align-items:center;font:11px system-ui,sans-serif;opacity:.8";
  form.setAttribute("data-lm-suppress-shortcuts", "true");  // arrow keys are the form's, not JupyterLab's
  form.setAttribute("aria-label", "Light what a device holds");
  form.append("device");
  for (const device of drawn ? devices : ["", ...devices]) {
    const label = document.createElement("label"), choice = document.createElement("input");
    Object.assign(choice, {type: "radio", name: "device", value: device, checked: device === drawn});
    choice.style.cssText = "margin:0 2px 0 0;vertical-align:-2px";
    label.append(choice, device || "any");
    form.append(label);
  }
  form.onchange = () => light(chosen());
  for (const block of blocks) {
    block.onpointerenter = () => light(holders(block));
    block.onpointerleave = () => light(chosen());
  }
  root.append(form);
})(document.currentScript.parentElement);
