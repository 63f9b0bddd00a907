(function (root, trace) {
  // Readers without scripts see the picture; otherwise a canvas replaces it.
  const still = root.querySelector("img");
  const bar = document.createElement("div"), canvas = document.createElement("canvas");
  const tip = document.createElement("div");
  bar.style.cssText = "display:flex; gap:6px; align-items:center; color:#222; font:12px sans-serif; margin-bottom:4px";
  tip.style.cssText = "position:absolute; display:none; pointer-events:none; background:#222; color:white; " +
    "font:12px sans-serif; padding:4px 7px; border-radius:3px; max-width:420px; overflow-wrap:anywhere; z-index:9";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", trace.alt);
  canvas.style.cssText = "display:block; width:100%; cursor:grab; touch-action:none; background:white";
  const lane = 20, gap = 8, top = 24, left = 104;
  const heights = trace.rows.map((row) => row.depth * lane);
  const height = top + heights.reduce((sum, one) => sum + one + gap, 0) + 4;
  const view = { from: 0, to: trace.end };
  let wide = 720, hovered = null;

  function button(text, title, act) {
    const made = document.createElement("button");
    made.textContent = text;
    made.title = title;
    made.setAttribute("aria-label", title);
    made.style.cssText = "font:13px sans-serif; padding:1px 9px; cursor:pointer";
    made.onclick = act;
    bar.appendChild(made);
  }
  function clamp() {
    const span = Math.min(view.to - view.from, trace.end);
    view.from = Math.max(0, Math.min(view.from, trace.end - span));
    view.to = view.from + span;
  }
  function zoom(by, x) {
    const at = time(x === undefined ? (left + wide) / 2 : x);
    const span = Math.min(trace.end, Math.max(0.5, (view.to - view.from) * by));
    const share = (at - view.from) / (view.to - view.from);
    view.from = at - share * span;
    view.to = view.from + span;
    clamp();
    draw();
  }
  function move(by) { view.from += by; view.to += by; clamp(); draw(); }
  const place = (t) => left + ((t - view.from) / (view.to - view.from)) * (wide - left);
  const time = (x) => view.from + ((x - left) / (wide - left)) * (view.to - view.from);
  function said(us) {
    if (us >= 1e6) return (us / 1e6).toPrecision(3) + " s";
    return us >= 1e3 ? (us / 1e3).toPrecision(3) + " ms" : (us >= 100 ? us.toFixed(0) : us.toPrecision(3)) + " µs";
  }
  function box(pen, x, y, w, slice) {
    const style = trace.styles[slice[4]];
    pen.fillStyle = style.hatch && w < 4 ? style.text : style.fill;
    pen.fillRect(x, y, w, lane - 2);
    if (style.hatch && w >= 4) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, w, lane - 2);
      pen.clip();
      pen.strokeStyle = style.text;
      pen.lineWidth = 0.7;
      pen.beginPath();
      for (let at = x - lane - ((x - lane) % 6); at < x + w; at += 6) { pen.moveTo(at, y + lane); pen.lineTo(at + lane, y); }
      pen.stroke();
      pen.restore();
    }
    if (w > 2) {
      pen.strokeStyle = slice === hovered ? "#000" : "#22222288";
      pen.lineWidth = slice === hovered ? 2 : 0.6;
      pen.strokeRect(x + 0.5, y + 0.5, w - 1, lane - 3);
    }
    if (w > 34 && !style.hatch) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, w - 3, lane);
      pen.clip();
      pen.fillStyle = style.text;
      pen.fillText(fitted(pen, trace.names[slice[3]], w - 8), x + 4, y + lane / 2 - 1);
      pen.restore();
    }
  }
  function fitted(pen, text, room) {
    const share = room / pen.measureText(text).width;
    return share >= 1 ? text : text.slice(0, Math.max(0, Math.floor(text.length * share) - 1)) + "…";
  }
  function axis(pen) {
    const raw = (view.to - view.from) / Math.max(2, (wide - left) / 110);
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = power * [1, 2, 5, 10].find((one) => one * power >= raw);
    pen.textAlign = "center";
    for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) {
      const x = place(n * step);
      pen.fillStyle = "#dddddd";
      pen.fillRect(x, top - 6, 1, height);
      pen.fillStyle = "#222";
      if (x < wide - 24) pen.fillText(n ? said(n * step) : "0", x, 9);
    }
    pen.textAlign = "left";
  }
  function arrows(pen) {
    const tops = heights.map((_, n) => top + heights.slice(0, n).reduce((sum, one) => sum + one + gap, 0));
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, wide - left, height);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = "#222222";
    pen.lineWidth = 0.8;
    for (const [above, upper, launched, below, lower, began] of trace.arrows) {
      const x = place(launched), y = tops[above] + upper * lane + lane - 2;
      const toX = place(began), toY = tops[below] + lower * lane;
      if (Math.max(x, toX) < left || Math.min(x, toX) > wide) continue;
      const long = Math.hypot(toX - x, toY - y) || 1, ux = (toX - x) / long, uy = (toY - y) / long;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(toX, toY);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(toX, toY);
      pen.lineTo(toX - 6 * ux - 2.5 * uy, toY - 6 * uy + 2.5 * ux);
      pen.lineTo(toX - 6 * ux + 2.5 * uy, toY - 6 * uy - 2.5 * ux);
      pen.fill();
    }
    pen.restore();
  }
  function draw() {
    const scale = window.devicePixelRatio || 1;
    wide = canvas.clientWidth || root.clientWidth || 720;
    canvas.width = wide * scale;
    canvas.height = height * scale;
    canvas.style.height = height + "px";
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px sans-serif";
    pen.textBaseline = "middle";
    axis(pen);
    let y = top;
    trace.rows.forEach((row, n) => {
      pen.fillStyle = "#222";
      pen.fillText(row.label, 4, y + lane / 2 - 1);
      pen.save();
      pen.beginPath();
      pen.rect(left, 0, wide - left, height);
      pen.clip();
      for (const slice of row.slices) {
        const x = place(slice[0]), w = Math.max(1, place(slice[0] + slice[1]) - x);
        if (x + w > left && x < wide) box(pen, x, y + slice[2] * lane, w, slice);
      }
      pen.restore();
      y += heights[n] + gap;
      pen.fillStyle = "#8C8C8C";
      pen.fillRect(0, y - gap / 2, wide, 0.5);
    });
    arrows(pen);
  }
  function under(x, y) {
    let up = top;
    for (let n = 0; n < trace.rows.length; n++) {
      const depth = Math.floor((y - up) / lane);
      if (y >= up && depth < trace.rows[n].depth) {
        const slack = 2 * (view.to - view.from) / wide, at = time(x);
        return trace.rows[n].slices.find((s) => s[2] === depth && s[0] - slack <= at && at <= s[0] + s[1] + slack) || null;
      }
      up += heights[n] + gap;
    }
    return null;
  }
  let held = null;
  canvas.onpointerdown = (event) => { held = event.offsetX; canvas.setPointerCapture(event.pointerId); };
  canvas.onpointerup = () => { held = null; canvas.style.cursor = "grab"; };
  canvas.onpointerleave = () => { tip.style.display = "none"; hovered = null; draw(); };
  canvas.onpointermove = (event) => {
    if (held !== null) {
      canvas.style.cursor = "grabbing";
      move(((held - event.offsetX) / (wide - left)) * (view.to - view.from));
      held = event.offsetX;
      return;
    }
    const found = event.offsetX < left ? null : under(event.offsetX, event.offsetY);
    if (found !== hovered) { hovered = found; draw(); }
    tip.style.display = found ? "block" : "none";
    if (!found) return;
    const style = trace.styles[found[4]];
    tip.textContent = trace.names[found[3]] + " (" + style.label + "): " + said(found[1]) + ", starting at " + said(found[0]);
    tip.style.left = Math.min(event.offsetX + 12, Math.max(0, wide - 300)) + "px";
    tip.style.top = canvas.offsetTop + event.offsetY + 16 + "px";
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      move(((event.deltaX || event.deltaY) / (wide - left)) * (view.to - view.from));
    } else zoom(Math.exp(0.0018 * event.deltaY), Math.max(left, event.offsetX));
  }, { passive: false });
  canvas.onkeydown = (event) => {
    const span = view.to - view.from;
    const act = {
      "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => zoom(1e9),
      ArrowLeft: () => move(-span / 6), ArrowRight: () => move(span / 6),
    }[event.key];
    if (act) { act(); event.preventDefault(); event.stopPropagation(); }
  };
  canvas.ondblclick = () => zoom(1e9);
  button("+", "zoom in", () => zoom(0.6));
  button("−", "zoom out", () => zoom(1 / 0.6));
  button("whole trace", "show the whole trace", () => zoom(1e9));
  bar.append("Scroll to zoom, drag to move, hover over a box for its name and time.");
  const head = document.createElement("div"), legend = document.createElement("div");
  head.textContent = trace.title;
  head.style.cssText = "font:bold 14px sans-serif; margin-bottom:4px";
  legend.style.cssText = "display:flex; gap:16px; font:12px sans-serif; margin-top:2px; padding-left:" + left + "px";
  for (const style of trace.styles.filter((_, n) => trace.rows.some((row) => row.slices.some((s) => s[4] === n)))) {
    const item = document.createElement("span"), swatch = document.createElement("span");
    const stripes = "repeating-linear-gradient(135deg, " + style.text + " 0 1px, white 1px 4px)";
    swatch.style.cssText = "display:inline-block; width:22px; height:10px; margin-right:5px; border:1px solid #555; " +
      "background:" + (style.hatch ? stripes : style.fill);
    item.append(swatch, style.label);
    legend.append(item);
  }
  if (still) still.style.display = "none";
  root.prepend(head, bar, canvas, legend, tip);
  if (window.ResizeObserver) new ResizeObserver(draw).observe(root);
  draw();
})
