package dev.parley.report;

import dev.parley.model.FigureRow;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The marks of technologies. A technology has one hue in every report and shares it with its variants, whose names
 * begin with its own; each of them has a shape of its own, so that none is told by its hue alone.
 */
final class Palette {
    /** How many hues page.css has, from {@code --t0}. */
    static final int HUES = 16;

    /** Their hues are those of their places here. */
    private static final List<String> KNOWN = List.of(
            "rest", "grpc", "rpcx", "openfeign", "graphql", "websocket", "rabbitmq", "kafka", "thrift", "rsocket");

    /** Paths around 0, 0 of a circle, a square, a diamond, a triangle, one upside down, and a cross. */
    static final List<String> SHAPES = List.of(
            "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z",
            "M-4.5,-4.5H4.5V4.5H-4.5Z",
            "M0,-6L6,0L0,6L-6,0Z",
            "M0,-5.5L5.5,4.5H-5.5Z",
            "M0,5.5L5.5,-4.5H-5.5Z",
            "M-2,-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z");

    private Palette() {}

    /**
     * How one technology is drawn.
     *
     * @param colour name of the variable in page.css
     * @param shape place among {@link #SHAPES}; lines are dashed by it
     */
    record Mark(String technology, String colour, int shape) {
        /** The empty service: in no technology's hue. */
        static final Mark EMPTY = new Mark(FigureRow.EMPTY, "--empty", 0);

        Mark {
            if (shape < 0 || shape >= SHAPES.size()) {
                throw new IllegalArgumentException(
                        "shape of " + technology + ": " + shape + " (expected: 0 to " + (SHAPES.size() - 1) + ")");
            }
        }

        String path() {
            return SHAPES.get(shape);
        }
    }

    /** A mark for each technology, in their order. */
    static List<Mark> of(List<String> technologies) {
        Map<String, Integer> hues = hues(technologies);
        Map<String, Integer> variants = new HashMap<>();
        List<Mark> marks = new ArrayList<>();
        for (String technology : technologies) {
            String family = family(technology);
            int hue = hues.getOrDefault(family, 0);
            int variant = 0;
            if (!family.equals(technology)) {
                variant = variants.getOrDefault(family, 0) + 1;
                variants.put(family, variant);
            }
            marks.add(new Mark(technology, "--t" + hue, (hue + variant) % SHAPES.size()));
        }
        return List.copyOf(marks);
    }

    /** Hues that no known technology has are taken first by others. */
    private static Map<String, Integer> hues(List<String> technologies) {
        List<String> families =
                technologies.stream().map(Palette::family).distinct().toList();
        Map<String, Integer> hues = new LinkedHashMap<>();
        families.stream().filter(KNOWN::contains).forEach(family -> hues.put(family, KNOWN.indexOf(family)));
        for (String family : families) {
            if (!hues.containsKey(family)) {
                int taken = hues.size();
                hues.put(
                        family,
                        IntStream.concat(IntStream.range(KNOWN.size(), HUES), IntStream.range(0, KNOWN.size()))
                                .filter(hue -> !hues.containsValue(hue))
                                .findFirst()
                                .orElse(taken % HUES));
            }
        }
        return hues;
    }

    /** The name of a variant begins with its technology's, and so does that of a line of one technology of several. */
    private static String family(String name) {
        return name.split("[-,]", 2)[0];
    }
}
