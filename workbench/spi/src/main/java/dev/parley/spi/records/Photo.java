package dev.parley.spi.records;

import java.util.Arrays;

/** A photo as it was sent. The content is not copied: nobody changes it. */
public record Photo(String name, byte[] content) {
    @Override
    public boolean equals(Object other) {
        return other instanceof Photo photo && name.equals(photo.name) && Arrays.equals(content, photo.content);
    }

    @Override
    public int hashCode() {
        return 31 * name.hashCode() + Arrays.hashCode(content);
    }

    @Override
    public String toString() {
        return "Photo[name=" + name + ", content=" + content.length + " B]";
    }
}
