package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.report.Palette.Mark;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PaletteTest {
    private static Mark mark(String technology, List<String> all) {
        return Palette.of(all).stream()
                .filter(mark -> mark.technology().equals(technology))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aTechnologyHasItsHueWhateverItIsComparedWith() {
        assertThat(mark("rpcx", List.of("rpcx")).colour()).isEqualTo("--t2");
        assertThat(mark("rpcx", List.of("mine", "kafka", "rpcx", "rest"))).isEqualTo(mark("rpcx", List.of("rpcx")));
    }

    @Test
    void aVariantHasTheHueOfItsTechnologyAndAnotherShape() {
        List<String> all = List.of("grpc", "grpc-tuned", "grpc-spring", "grpc-spring-tuned");
        assertThat(Palette.of(all)).extracting(Mark::colour).containsOnly("--t1");
        assertThat(Palette.of(all)).extracting(Mark::shape).doesNotHaveDuplicates();
        assertThat(mark("grpc-tuned", List.of("grpc-tuned")).shape())
                .as("alone it is not taken for grpc")
                .isNotEqualTo(mark("grpc", all).shape());
    }

    @Test
    void sixteenTechnologiesHaveSixteenHues() {
        List<String> all = new ArrayList<>(List.of("rest", "grpc", "rpcx", "thrift"));
        IntStream.range(0, 12).forEach(i -> all.add("new" + i));
        assertThat(Palette.of(all)).extracting(Mark::colour).doesNotHaveDuplicates();
    }

    /** Differences are those of Oklab, as large as they look (Ottosson, 2020). Contrast: WCAG 2.2, 1.4.11. */
    @Test
    void huesDifferFromEachOtherAndFromThePageInLightAndDark() {
        String css = Pages.resource("page.css");
        List<String> hues = Pattern.compile("--t\\d+: (#[0-9a-f]{6});")
                .matcher(css)
                .results()
                .map((MatchResult found) -> found.group(1))
                .toList();
        assertThat(hues).hasSize(2 * Palette.HUES);
        differ(hues.subList(0, Palette.HUES), "#ffffff");
        differ(hues.subList(Palette.HUES, 2 * Palette.HUES), "#1b1f24");
    }

    private static void differ(List<String> hues, String page) {
        for (int i = 0; i < hues.size(); i++) {
            assertThat(contrast(hues.get(i), page))
                    .as(hues.get(i) + " on " + page)
                    .isGreaterThan(3);
            for (int j = 0; j < i; j++) {
                assertThat(distance(hues.get(i), hues.get(j)))
                        .as(hues.get(i) + " and " + hues.get(j))
                        .isGreaterThan(0.06);
            }
        }
    }

    private static double[] linear(String colour) {
        return IntStream.of(1, 3, 5)
                .mapToDouble(at -> Integer.parseInt(colour.substring(at, at + 2), 16) / 255.0)
                .map(c -> c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4))
                .toArray();
    }

    private static double contrast(String one, String other) {
        double a = luminance(one) + 0.05;
        double b = luminance(other) + 0.05;
        return Math.max(a, b) / Math.min(a, b);
    }

    private static double luminance(String colour) {
        double[] c = linear(colour);
        return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
    }

    private static double distance(String one, String other) {
        double[] a = oklab(one);
        double[] b = oklab(other);
        return Math.sqrt(IntStream.range(0, 3)
                .mapToDouble(i -> (a[i] - b[i]) * (a[i] - b[i]))
                .sum());
    }

    private static double[] oklab(String colour) {
        double[] c = linear(colour);
        double l = Math.cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] + 0.0514459929 * c[2]);
        double m = Math.cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] + 0.1073969566 * c[2]);
        double s = Math.cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] + 0.6299787005 * c[2]);
        return new double[] {
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s
        };
    }
}
