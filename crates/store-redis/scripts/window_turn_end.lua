          if not far or over then vh, vl = 0, 0 end
          es, en, moved = hs, hn, true
        end
      end
