"use strict";
// Plots on canvases. Colours come from the style sheet, so that they follow the theme.

const Plots = (() => {
  const styles = () => getComputedStyle(document.documentElement);

  /** A canvas's context in CSS pixels, cleared. */
  function context(canvas, height) {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const tall = height || canvas.clientHeight;
    if (height) canvas.style.height = `${height}px`;
    const [w, h] = [Math.round(width * ratio), Math.round(tall * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const to = canvas.getContext("2d");
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    to.clearRect(0, 0, width, tall);
    return { to, width, height: tall };
  }

  /** The colour of a load from 0 to 100, by the three stops of the theme. */
  function heatScale() {
    const style = styles();
    const stops = [0, 1, 2].map((stop) => style.getPropertyValue(`--heat-${stop}`).trim().split(/\s+/).map(Number));
    return (load) => {
      const at = Math.min(Math.max(load, 0), 100) / 50;
      const [from, to] = at < 1 ? [stops[0], stops[1]] : [stops[1], stops[2]];
      const part = at < 1 ? at : at - 1;
      return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * part)).join(" ")})`;
    };
  }

  function scale(canvas) {
    const { to, width, height } = context(canvas);
    const color = heatScale();
    for (let x = 0; x < width; x += 1) {
      to.fillStyle = color((x / width) * 100);
      to.fillRect(x, 0, 1, height);
    }
  }

  /** Space for the numbers of lanes. */
  const LABELS = 26;

  /** Rows of lanes, columns of seconds; the last second is at the right. `cursor` is { lane, age } or null. */
  function heat(canvas, loads, kept, cursor) {
    const rows = Math.max(loads.length, 1);
    const row = Math.max(6, Math.min(24, Math.floor(360 / rows)));
    const { to, width } = context(canvas, rows * row);
    const color = heatScale();
    const style = styles();
    const column = (width - LABELS) / kept;
    const gap = row > 8 ? 2 : 1;
    to.font = `${Math.min(12, row)}px system-ui, sans-serif`;
    to.textBaseline = "middle";
    to.textAlign = "right";
    const every = row >= 12 ? 1 : Math.ceil(12 / row);
    loads.forEach((lane, number) => {
      const y = number * row;
      if (number % every === 0) {
        to.fillStyle = style.getPropertyValue("--quiet");
        to.fillText(number, LABELS - 8, y + row / 2);
      }
      to.fillStyle = style.getPropertyValue("--page");
      to.fillRect(LABELS, y, width - LABELS, row - gap);
      const first = kept - lane.length;
      lane.forEach((load, at) => {
        to.fillStyle = color(load);
        const x = LABELS + (first + at) * column;
        to.fillRect(x, y, Math.ceil(column) + 0.5, row - gap);
      });
    });
    if (cursor && loads[cursor.lane]) {
      const x = LABELS + (kept - 1 - cursor.age) * column;
      to.strokeStyle = style.getPropertyValue("--text");
      to.lineWidth = 1.5;
      to.strokeRect(x - 1, cursor.lane * row, Math.max(column, 3) + 2, row - gap);
    }
    return {
      /** The lane and the age in seconds at a place. */
      at(x, y) {
        const age = kept - 1 - Math.floor((x - LABELS) / column);
        return { lane: Math.min(Math.floor(y / row), loads.length - 1), age: Math.min(Math.max(age, 0), kept - 1) };
      },
    };
  }

  /** A line from the oldest to the latest value; null is a gap. */
  function line(canvas, values, kept, floor) {
    const { to, width, height } = context(canvas);
    const style = styles();
    const known = values.filter((value) => value !== null);
    if (known.length < 2) return;
    const least = floor;
    const most = Math.max(...known, least + 1e-9);
    const top = 8;
    const y = (value) => height - 1.5 - ((value - least) / (most - least)) * (height - top - 3);
    const x = (at) => ((kept - values.length + at) / (kept - 1)) * width;
    to.beginPath();
    let isDrawing = false;
    values.forEach((value, at) => {
      if (value === null) isDrawing = false;
      else if (isDrawing) to.lineTo(x(at), y(value));
      else {
        to.moveTo(x(at), y(value));
        isDrawing = true;
      }
    });
    to.strokeStyle = style.getPropertyValue("--accent");
    to.lineWidth = 1.5;
    to.lineJoin = "round";
    to.stroke();
  }

  return { heat, line, scale };
})();
